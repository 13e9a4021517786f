// A program outside the tree that uses the installed libraries: parses an origin, borrows an object, runs a task on a
// pool thread.
#include <chrono>
#include <cstdio>

#include "exec/thread_pool.h"
#include "pool/core/pool.h"
#include "pool/origin.h"

namespace {

using carpool::pool::EntryWord;
using carpool::pool::Match;

bool lends_once() {
  carpool::pool::Pool<int> pool(1, 1);
  auto* entry = pool.reserve();
  if (entry == nullptr || pool.reserve() != nullptr) return false;  // the cap is exact
  if (!pool.enable(*entry, 0, false)) return false;
  const auto any = [](const auto&, EntryWord) { return Match::take; };
  if (!pool.acquire(0, true, any).taken || pool.acquire(0, true, any).taken) return false;
  return pool.release(*entry) && pool.acquire(0, true, any).taken;
}

bool threads_start_and_stop() {
  carpool::exec::ThreadPool threads({.min = 1, .max = 2});
  return threads.start() && threads.stop(std::chrono::seconds(5));
}

}  // namespace

int main() {
  const auto origin = carpool::pool::parse_origin("HTTPS://Bücher.example:443/");
  if (!origin || !lends_once() || !threads_start_and_stop()) return 1;
  std::puts(origin->label().c_str());
}
