// Unit tests of FdBudget: the connections to origins that the descriptor limit allows.
#include "proxy/upstream/fd_budget.h"

#include <gtest/gtest.h>

namespace carpool::proxy {
namespace {

config::Config with(std::uint32_t total, std::uint32_t clients) {
  config::Config config;
  config.pool_total.max_connections = total;
  config.listen.front().max_connections = clients;
  return config;
}

TEST(Descriptors, LeaveTheTotalAloneWhereThereIsRoomForAll) {
  EXPECT_EQ(total_under_limit(with(4096, 10000), 20000), 4096U);
}

TEST(Descriptors, LowerTheTotalToWhatIsLeftBesideTheClients) {
  EXPECT_EQ(total_under_limit(with(20000, 1000), 20000), 20000U - 1000 - 64);
}

TEST(Descriptors, GiveClientsThatMayNeverComeAtMostHalf) {
  EXPECT_EQ(total_under_limit(with(4096, 10000), 1024), 1024U - 512 - 64);
}

TEST(Descriptors, NeverRefuseToRun) {
  EXPECT_EQ(total_under_limit(with(4096, 10000), 32), 16U);
}

}  // namespace
}  // namespace carpool::proxy
