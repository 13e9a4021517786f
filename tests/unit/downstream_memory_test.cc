// Unit tests of the memory that the exchanges of a loop keep once their requests are over.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/exchange_fixture.h"
#include "tests/unit/heap_in_use.h"

namespace carpool::proxy {
namespace {

class PooledExchanges : public test::ExchangeFixture {
 protected:
  static constexpr std::size_t kClients = 64;  // as many as the pool has connections

  // All clients ask at once. `host`, `above`, `below`: bytes of Host, and of the trailers of requests and of responses.
  void ask_all(std::size_t host, std::size_t above, std::size_t below) {
    std::vector<test::MemoryWire*> all;
    for (std::size_t n = 0; n < kClients; ++n) {
      all.push_back(&client());
      send(*all.back(), "POST / HTTP/1.1\r\nHost: a.test:" + std::string(host, '0') +
                            "80\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n");
      send(*all.back(), "x-sum: " + std::string(above, 'u') + "\r\n\r\n");
    }
    while (dials() != 0) connect();
    for (std::size_t n = 0; n < kClients; ++n) {
      plane_.from_origin(n, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nx-sum: " +
                                std::string(below, 'd') + "\r\n\r\n");
    }
    for (test::MemoryWire* one : all) EXPECT_TRUE(has(one->outgoing, " 200 OK") && has(one->outgoing, "x-sum: d"));
    for (std::size_t n = 0; n < kClients; ++n) EXPECT_TRUE(has(origin(n).outgoing, "x-sum: u"));
    exec::assume_on_loop();
    clients_.end_all();
    plane_.turn();
    for (test::MemoryWire* one : all) free_text(*one);
    for (std::size_t n = 0; n < kClients; ++n) free_text(origin(n));
  }
  static void free_text(test::MemoryWire& wire) {
    std::string().swap(wire.incoming);
    std::string().swap(wire.outgoing);
  }
  // Returns the bytes held after such requests beyond those held after small ones, for each client.
  std::int64_t kept(std::size_t host, std::size_t above, std::size_t below) {
    plane_.listen.origin = "http://a.test";
    plane_.listen.preserve_host = true;
    plane_.listener.change(plane_.listen);
    for (int n = 0; n < 2; ++n) ask_all(1, 1, 1);
    const std::int64_t before = test::heap_in_use();
    ask_all(host, above, below);
    return (test::heap_in_use() - before) / static_cast<std::int64_t>(kClients);
  }
  static constexpr std::int64_t kKeptCapacity = 8192;
};

constexpr std::size_t kLarge = 60'000;

TEST_F(PooledExchanges, KeepNoTrailersOfRequests) {
  EXPECT_LT(kept(1, kLarge, 1), kKeptCapacity);
}

TEST_F(PooledExchanges, KeepNoTrailersOfResponses) {
  EXPECT_LT(kept(1, 1, kLarge), kKeptCapacity);
}

TEST_F(PooledExchanges, KeepNoHost) {
  EXPECT_LT(kept(kLarge, 1, 1), kKeptCapacity);
}

}  // namespace
}  // namespace carpool::proxy
