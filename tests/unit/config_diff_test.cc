// Unit tests of what a reload applies and what it leaves for a restart.
#include "proxy/config/diff.h"

#include <gtest/gtest.h>

#include <string>

#include "config_helpers.h"

namespace carpool::proxy::config {
namespace {

Config with_public_admin() {
  Config config;
  config.admin.address = "0.0.0.0:9901";
  config.admin.token_file = "/etc/token";
  config.admin.cert_file = "/etc/admin.crt";
  config.admin.key_file = "/etc/admin.key";
  return config;
}

TEST(AnAdminEndpoint, KeepsItsTokenAndTlsWithTheAddressThatNeedsARestart) {
  const Config before = with_public_admin();
  Config moved;
  moved.shutdown_grace = before.shutdown_grace + std::chrono::seconds(1);
  keep_what_needs_restart(before, moved);
  EXPECT_EQ(moved.admin, before.admin);
  EXPECT_NE(moved.shutdown_grace, before.shutdown_grace);
  Config disabled = before;
  disabled.admin.enabled = false;
  disabled.admin.token_file.clear();
  keep_what_needs_restart(before, disabled);
  EXPECT_EQ(disabled.admin, before.admin);
}

TEST(AnAdminEndpoint, WhoseAddressStaysTakesItsNewFiles) {
  const Config before = with_public_admin();
  Config renewed = before;
  renewed.admin.token_file = "/etc/other";
  const Config wanted = renewed;
  keep_what_needs_restart(before, renewed);
  EXPECT_EQ(renewed.admin, wanted.admin);
  for (const Change& change : diff(before, wanted)) EXPECT_TRUE(change.live) << change.key;
}

TEST(AnAdminEndpoint, WhoseAddressChangesIsReportedToChangeWithTheRestart) {
  Config moved;
  moved.shutdown_grace += std::chrono::seconds(1);
  int keys = 0;
  for (const Change& change : diff(with_public_admin(), moved)) {
    const bool admin = change.key.starts_with("admin.");
    keys += admin ? 1 : 0;
    EXPECT_EQ(change.live, !admin) << change.key;
  }
  EXPECT_EQ(keys, 4);
}

TEST(ListenersOnAnyPort, AreComparedEachWithItself) {
  const Config two = good(
      "[[listen]]\naddress = \"127.0.0.1:0\"\norigin = \"http://a\"\n"
      "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"[::1]:0\"\n");
  EXPECT_TRUE(diff(two, two).empty());
  EXPECT_EQ(two.listen[0].name(), "127.0.0.1:0");
  EXPECT_EQ(two.listen[1].name(), "127.0.0.1:0#1");
  EXPECT_EQ(two.listen[2].name(), "[::1]:0");
  Config fewer = two;
  fewer.listen.erase(fewer.listen.begin() + 1);
  const std::vector<Change> changes = diff(two, fewer);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes.front().key, "listen 127.0.0.1:0#1");
}

}  // namespace
}  // namespace carpool::proxy::config
