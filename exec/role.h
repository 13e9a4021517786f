// on_loop: the clang capability "on the loop": loop-local data and functions are checked at compile time (clang
// preset), and UvLoop::enter() checks the thread at run time. g++ ignores the macros.
//
// A function that runs on the loop is declared LOOP_ONLY, also when it overrides one that is (on_ready, run, arrive).
// Where the analysis cannot see it (a C callback, a Timer's callback), its first line is assume_on_loop().
#pragma once

#include "base/thread_safety.h"

namespace carpool::exec {

class CARPOOL_TSA(capability("role")) Role {};
inline Role on_loop;  // never locked, only asserted: once, where an event enters

}  // namespace carpool::exec

#define LOOP_ONLY CARPOOL_TSA(requires_capability(::carpool::exec::on_loop))
#define LOOP_LOCAL CARPOOL_TSA(guarded_by(::carpool::exec::on_loop))
#define LOOP_ENTER CARPOOL_TSA(assert_capability(::carpool::exec::on_loop))

namespace carpool::exec {

inline void assume_on_loop() LOOP_ENTER {}

}  // namespace carpool::exec
