// Unit tests of WatchTable: names fit in the kernel's field, and the name of an ended registration resolves to none.
#include "exec/watch_table.h"

#include "tests/unit/exec_support.h"

namespace carpool::exec {
namespace {

TEST(EventName, SurvivesTheKernel) {
  for (const EventKind kind : {EventKind::wake, EventKind::libuv, EventKind::local, EventKind::shared}) {
    for (const std::uint32_t generation : {0U, 1U, EventName::kSharedGenerations - 1, EventName::kGenerations - 1}) {
      for (const std::uint32_t index : {0U, 1U, UINT32_MAX}) {
        const EventName name = EventName::unpack(EventName{kind, generation, index}.pack());
        EXPECT_EQ(kind, name.kind);
        EXPECT_EQ(generation, name.generation);
        EXPECT_EQ(index, name.index);
      }
    }
  }
}

TEST(WatchTable, FindsAWatcherUntilItIsRemoved) {
  WatchTable table;
  testing::OnReady watcher([](Ready) {});
  const WatchKey key = table.add(watcher);
  EXPECT_NE(0U, key.generation);
  EXPECT_EQ(&watcher, table.find(key.slot, key.generation));
  EXPECT_TRUE(table.remove(key));
  EXPECT_EQ(nullptr, table.find(key.slot, key.generation));
  EXPECT_FALSE(table.remove(key));
  EXPECT_EQ(0U, table.size());
}

TEST(WatchTable, GivesASlotAgainUnderAnotherName) {
  WatchTable table;
  testing::OnReady first([](Ready) {}), second([](Ready) {});
  const WatchKey old = table.add(first);
  table.remove(old);
  const WatchKey fresh = table.add(second);
  EXPECT_EQ(old.slot, fresh.slot);
  EXPECT_EQ(nullptr, table.find(old.slot, old.generation));
  EXPECT_FALSE(table.remove(old)) << "a stale key ends nobody else's registration";
  EXPECT_EQ(&second, table.find(fresh.slot, fresh.generation));
}

TEST(WatchTable, KnowsNobodyByTheEmptyKey) {
  WatchTable table;
  EXPECT_FALSE(table.remove({}));
  testing::OnReady watcher([](Ready) {});
  const WatchKey key = table.add(watcher);
  EXPECT_FALSE(table.remove({}));
  EXPECT_TRUE(table.remove(key));
}

}  // namespace
}  // namespace carpool::exec
