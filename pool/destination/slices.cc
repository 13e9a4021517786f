// What concerns every connection, or everybody in line: a bounded number under one hold of the mutex, so that no loop
// waits long for it, and one pass in all.
#include "pool/destination/slices.h"

namespace carpool::pool {

// No mutex is held: what is read is what a search reads. Throws std::bad_alloc.
std::vector<Rested> Destination::Impl::idle_by_rest(bool served_only) const {
  std::vector<Rested> all;
  all.reserve(pool.in_use());
  pool.for_each_idle([&](Chair& entry) {
    const Word word(entry.word.load(std::memory_order_acquire));
    if (!word.idle() || (served_only && word.uses() == 0)) return;
    all.push_back({entry.value.idle_since.get(), &entry, word});
  });
  std::sort(all.begin(), all.end(), [](const Rested& one, const Rested& other) { return one.since < other.since; });
  return all;
}

// Under the mutex; work.more: there may be others. One that becomes idle behind this is given back by somebody who saw
// why they end.
void Destination::Impl::end_some_idle(Closed cause, Errands& work) {
  static_cast<void>(pool.find_idle(0, [&](Chair& entry) {
    const Word seen(entry.word.load(std::memory_order_acquire));
    if (!seen.idle()) return false;
    if (!work.step()) return true;
    static_cast<void>(end_idle(entry, seen, cause, work));
    return false;
  }));
}

void Destination::Impl::end_all_idle(Closed cause) {
  for (bool more = true; more;) {
    Errands work;
    {
      const std::scoped_lock lock(mutex);
      end_some_idle(cause, work);
    }
    more = work.more;
    static_cast<void>(perform(work));
  }
}

void Destination::Impl::refuse_all(const Fault& fault) {
  for (bool more = true; more;) {
    Errands work;
    {
      const std::scoped_lock lock(mutex);
      while (!line.empty() && work.step()) refuse(*line.first(), fault, work);
    }
    more = work.more;
    static_cast<void>(perform(work));
  }
}

// Sessions take nobody new, and end with their last user.
void Destination::Impl::drain_sessions(Closed cause) {
  in_slices([&](std::uint32_t first, std::uint32_t count, Errands& work) {
    if (held[static_cast<std::size_t>(Kind::h2)] == 0) return;
    pool.for_each(first, count, [&](Chair& entry) {
      const Word word(entry.word.load(std::memory_order_acquire));
      if (kind_of(entry) != Kind::h2 || word.closed() || word.reserved()) return;
      drain(entry, cause, work);
    });
  });
}

}  // namespace carpool::pool
