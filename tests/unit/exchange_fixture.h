// ExchangeFixture: one exchange between clients and an origin in memory, for the unit tests of relaying and of retries.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "pool/destination/snapshot.h"
#include "tests/unit/data_plane.h"

namespace carpool::test {

inline constexpr std::string_view kGetRequest = "GET http://a.test/1 HTTP/1.1\r\nHost: a.test\r\n\r\n";
inline constexpr std::string_view kEmpty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

// A text of this size in which each place can be recognized.
inline std::string numbered(std::size_t size) {
  std::string text;
  for (int n = 0; text.size() < size; ++n) text += std::to_string(n) + " ";
  text.resize(size);
  return text;
}

class ExchangeFixture : public ::testing::Test {
 protected:
  explicit ExchangeFixture(proxy::config::Config settings = {}) : plane_(std::move(settings)) {
    exec::assume_on_loop();
  }
  ~ExchangeFixture() override {
    exec::assume_on_loop();
    clients_.end_all();
    plane_.turn();
  }
  MemoryWire& client() {
    exec::assume_on_loop();
    return clients_.add(plane_.listener);
  }
  void send(MemoryWire& wire, std::string_view bytes, bool end = false) {
    exec::assume_on_loop();
    clients_.send(wire, bytes, end);
    plane_.turn();
  }
  void make_room(MemoryWire& wire, std::size_t bytes) {
    exec::assume_on_loop();
    clients_.make_room(wire, bytes);
    plane_.turn();
  }
  void fail_dial() {
    exec::assume_on_loop();
    auto dial = std::move(plane_.environment.dials.front());
    plane_.environment.dials.pop_front();
    dial.destination->dial_failed(std::move(*dial.reservation), {FaultKind::connect_refused, Side::upstream, "refused"},
                                  plane_.now);
    plane_.turn();
  }
  MemoryWire& connect() {
    MemoryWire& origin = plane_.environment.connect();
    plane_.turn();
    return origin;
  }
  // A client whose request was sent to the origin on the first connection.
  MemoryWire& asked(std::string_view request = kGetRequest) {
    MemoryWire& one = client();
    send(one, request);
    if (dials() == 0) plane_.pass(std::chrono::seconds(2));  // a large body is in flight once it streams
    EXPECT_NE(0U, dials());
    if (dials() != 0) connect();
    return one;
  }
  // The same after an exchange that left the connection idle.
  MemoryWire& asked_again(std::string_view request = kGetRequest) {
    MemoryWire& one = asked();
    plane_.from_origin(0, kEmpty);
    one.outgoing.clear();
    origin(0).outgoing.clear();
    send(one, request);
    return one;
  }
  MemoryWire& origin(std::size_t n) { return *std::next(plane_.environment.wires.begin(), static_cast<int>(n)); }
  std::size_t dials() const { return plane_.environment.dials.size(); }
  pool::Destination::Snapshot snapshot() {
    return (*plane_.origins->at(*pool::parse_origin("http://a.test")))->destination->snapshot(plane_.now);
  }
  std::uint64_t idle() { return snapshot().connections[static_cast<std::size_t>(pool::ConnectionStatus::idle)]; }
  static bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

  DataPlane plane_;
  OwnedClients clients_{plane_.context};
};

}  // namespace carpool::test
