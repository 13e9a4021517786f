// reconnect(): replaces every connection while waiters are served.
#include <utility>

#include "pool/destination/slices.h"

namespace carpool::pool {

void Destination::Impl::reconnect(Instant now) {
  {
    const Held lock(mutex);
    if (stopped()) return;
    replacement.restart();
  }
  drain_sessions(CloseCause::reconnect);  // one that opens from now on is new
  in_slices([this](std::uint32_t first, std::uint32_t count, DeferredActions&) {
    mutex.assert_held();
    pool.for_each(first, count, [this](SlotEntry& entry) {
      mutex.assert_held();
      const EntryWord word(entry.word.load(std::memory_order_acquire));
      const bool tunnel = entry.value.tunnel.load(std::memory_order_relaxed);
      if (word.vacant() || word.reserved() || word.closed() || tunnel || entry.value.pooled == nullptr) return;
      if (protocol_of(entry) == Protocol::h2) return;
      if (!std::exchange(entry.value.replace, true)) ++replacement.marked;
      if (word.idle()) ++replacement.to_dial;
    });
    review();
  });
  plan_missed();
  serve_waiters(now);
}

// Returns true if an entry that became idle without the mutex is marked, and not borrowed again meanwhile: its next
// release takes the mutex. Without this question each release and inspection would examine every entry.
bool Destination::Impl::needs_replacement(const SlotEntry& entry) {
  const Held lock(mutex);
  return entry.value.replace && EntryWord(entry.word.load(std::memory_order_acquire)).idle();
}

// Plans the successors of marked connections that became idle without the mutex: they were released, or inspected, when
// they were marked, or inspected when their turn came. Called after a marked entry became idle, when waiting() was
// read, and after reconnect() raised kReview: one of the two sees the other.
void Destination::Impl::plan_missed() {
  std::uint32_t idle = 0;
  in_slices([&](std::uint32_t first, std::uint32_t count, DeferredActions&) {
    mutex.assert_held();
    if (replacement.marked == 0) return;
    pool.for_each(first, count, [&](const SlotEntry& entry) {
      mutex.assert_held();
      // seq_cst: pairs with try_release() and end_inspect().
      if (entry.value.replace && EntryWord(entry.word.load(std::memory_order_seq_cst)).idle()) ++idle;
    });
  });
  if (idle == 0) return;
  const Held lock(mutex);
  replacement.plan(idle, supply.redials());
  review();
}

// Dials successors of idle connections. At the cap one closes first to make a place.
void Destination::Impl::redial_old(DeferredActions& actions, Instant now) {
  if (replacement.to_close != 0) end_replaced(actions);
  while (replacement.to_dial != 0 && !backoff.blocks(now) && allowed_dials(now) != 0) {
    if (!actions.step()) return;
    SlotEntry* old = idle_to_replace(actions);
    if (old == nullptr && actions.more) return;
    if (old == nullptr) replacement.dial_closed_only();  // the others were lent meanwhile
    if (replacement.to_dial == 0) return review();
    if (SlotEntry* entry = reserve(actions)) {
      if (--replacement.to_dial == 0) review();
      record_dial(*entry, ProtocolMask::any, OpenCause::reconnect, actions, now);
      continue;
    }
    // One connection is replaced at a time.
    if (old == nullptr || pending.disposing() != 0 || supply.redials() != 0) return;
    const EntryWord word(old->word.load(std::memory_order_acquire));
    if (end_idle(*old, word, CloseCause::reconnect, actions)) ++replacement.closed_before;
  }
}

// A successor is open: closes one predecessor unless it was closed before.
void Destination::Impl::replaced(const SlotEntry& entry, DeferredActions& actions) {
  if (entry.value.opened.load(std::memory_order_relaxed) != OpenCause::reconnect) return;
  if (replacement.closed_before != 0) {
    --replacement.closed_before;
    return;
  }
  ++replacement.to_close;
  end_replaced(actions);
}

void Destination::Impl::end_replaced(DeferredActions& actions) {
  while (replacement.to_close != 0) {
    SlotEntry* old = idle_to_replace(actions);
    if (old == nullptr && actions.more) return;
    if (old == nullptr) {
      replacement.to_close = 0;  // the others were lent meanwhile: they close on release
    } else if (end_idle(*old, EntryWord(old->word.load(std::memory_order_acquire)), CloseCause::reconnect, actions)) {
      --replacement.to_close;
    }
  }
}

// Returns the next idle connection to be replaced, continuing where the last search ended. Null: there is none or, with
// actions.more, none in this slice.
SlotEntry* Destination::Impl::idle_to_replace(DeferredActions& actions) {
  const std::uint32_t known = pool.blocks();
  for (; replacement.searched < known; ++replacement.searched, ++replacement.block) {
    SlotEntry* found = nullptr;
    const std::uint32_t first = replacement.block % known * kBlockEntries;
    for (std::uint32_t n = 0; n < kBlockEntries && found == nullptr; ++n) {
      SlotEntry* const entry = pool.find(first + n);
      if (entry == nullptr) break;
      if (entry->value.replace && EntryWord(entry->word.load(std::memory_order_acquire)).idle()) found = entry;
    }
    if (found != nullptr) {
      replacement.searched = 0;
      return found;
    }
    for (unsigned n = 0; n < kBlockEntries; ++n) {
      if (!actions.step()) return nullptr;
    }
  }
  replacement.searched = 0;
  return nullptr;
}

}  // namespace carpool::pool
