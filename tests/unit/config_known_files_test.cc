// Configurations of other projects that start carpool, word for word: they must stay valid.
#include "config_helpers.h"

namespace carpool::proxy::config {
namespace {

const std::string kFile = CARPOOL_SOURCE_DIR "/tests/unit/config_known_files_test.cc";

TEST(KnownFiles, TheSuitesConfigurationIsTaken) {
  const Config config = good(R"(
workers = 2
shutdown_grace = "1s"
[[listen]]
address = "127.0.0.1:34567"
header_timeout = "5s"
idle_timeout = "10s"
[admin]
address = "unix:/tmp/somewhere/admin.sock"
[pool]
size = 256
connect_timeout = "2s"
wait_timeout = "8s"
[request]
response_header_timeout = "4s"
idle_timeout = "4s"
[dns]
min_ttl = "1s"
max_ttl = "5s"
[upstream.tls]
ca_file = ")" + kFile + R"("
[log]
level = "warn"
access = false
)");
  EXPECT_EQ(config.pool.size, 256U);
  EXPECT_EQ(config.upstream.tls.ca_file, kFile);
}

std::string benchmark(const std::string& size, const std::string& protocols, const std::string& fixed) {
  return R"(
workers = 2
shutdown_grace = "0s"
[[listen]]
address = "127.0.0.1:34567"
idle_timeout = "10m"
max_connections = 10100
)" + fixed +
         R"(
[admin]
address = "unix:/tmp/somewhere/admin.sock"
[pool]
size = )" +
         size + R"(
idle_timeout = "10m"
max_waiting = 100000
wait_timeout = "10m"
[pool.total]
max_connections = 20000
[upstream]
protocols = )" +
         protocols + R"(
[upstream.tls]
ca_file = ")" +
         kFile + R"("
server_name = "origin.test"
[log]
level = "warn"
access = false
)";
}

TEST(KnownFiles, TheBenchmarksConfigurationIsTaken) {
  for (const std::string size : {"1", "32", "4096"}) {
    for (const std::string fixed : {"", "origin = \"http://127.0.0.1:9000\"", "origin = \"https://127.0.0.1:9000\""}) {
      good(benchmark(size, "[\"h1\"]", fixed));
    }
  }
}

TEST(KnownFiles, TheBenchmarksH2IsTaken) {
  good(benchmark("32", "[\"h2\"]", ""));
}

}  // namespace
}  // namespace carpool::proxy::config
