#include "exec/watch_table.h"

#include "base/assert.h"

namespace carpool::exec {

WatchKey WatchTable::add(Watcher& watcher) {
  std::uint32_t index = free_;
  if (index == kNone) {
    index = static_cast<std::uint32_t>(slots_.size());
    CARPOOL_ASSERT(index != kNone);
    slots_.emplace_back();
  } else {
    free_ = slots_[index].next_free;
  }
  slots_[index].watcher = &watcher;
  ++used_;
  return {index, slots_[index].generation};
}

bool WatchTable::remove(WatchKey key) {
  if (find(key.slot, key.generation) == nullptr) return false;
  Slot& slot = slots_[key.slot];
  slot.watcher = nullptr;
  slot.generation = slot.generation + 1 == EventName::kGenerations ? 1 : slot.generation + 1;
  slot.next_free = free_;
  free_ = key.slot;
  --used_;
  return true;
}

Watcher* WatchTable::find(std::uint32_t slot, std::uint32_t generation) const {
  if (slot >= slots_.size() || slots_[slot].generation != generation) return nullptr;
  return slots_[slot].watcher;
}

}  // namespace carpool::exec
