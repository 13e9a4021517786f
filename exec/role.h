// "On the loop" as one clang role: loop-local data and functions are checked at compile time (clang preset), and
// UvLoop::enter() checks at run time that it is this loop's thread. g++ ignores the macros.
//
// A function that runs on the loop says LOOP_ONLY, also when it overrides one that does (on_ready, run, arrive). Where
// the analysis cannot see that it does (a C callback, a Timer's callback), the first line says assume_on_loop().
#pragma once

#if defined(__clang__)
#define CARPOOL_TSA(...) __attribute__((__VA_ARGS__))
#else
#define CARPOOL_TSA(...)
#endif

namespace carpool::exec {

class CARPOOL_TSA(capability("role")) Role {};
inline Role on_loop;  // never locked, only asserted: once, where an event enters the house

}  // namespace carpool::exec

#define LOOP_ONLY CARPOOL_TSA(requires_capability(::carpool::exec::on_loop))
#define LOOP_LOCAL CARPOOL_TSA(guarded_by(::carpool::exec::on_loop))
#define LOOP_ENTER CARPOOL_TSA(assert_capability(::carpool::exec::on_loop))

namespace carpool::exec {

inline void assume_on_loop() LOOP_ENTER {}

}  // namespace carpool::exec
