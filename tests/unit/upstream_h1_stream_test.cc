// Unit tests of H1UpstreamStream: it serves one attempt after the other, and the state of one attempt does not affect
// the next.
#include "proxy/upstream/h1_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/session_world.h"

namespace carpool::test {
namespace {

using proxy::AttemptState;

// A connection whose origin has responded already and no longer reads.
class Script final : public proxy::net::Transport {
 public:
  explicit Script(std::string response) : Transport(Fd()), response_(std::move(response)) { readable_ = true; }
  proxy::net::IoResult read(std::span<char> into) override {
    if (response_.empty()) {
      readable_ = false;
      return {proxy::net::Io::would_block, 0, 0, {}};
    }
    const std::size_t size = response_.copy(into.data(), into.size());
    response_.erase(0, size);
    return {proxy::net::Io::ok, size, 0, {}};
  }
  proxy::net::IoResult write(std::span<const iovec>) override { return {proxy::net::Io::failed, 0, EPIPE, "broken"}; }
  void shut_write() override {}
  bool no_data_pending() override { return response_.empty(); }
  bool ended_in_order() override { return false; }

 private:
  std::string response_;
};

proxy::net::Dialed dialed(std::string response) {
  proxy::net::Dialed one;
  one.transport = std::make_unique<Script>(std::move(response));
  return one;
}

// Retries once, on the next connection, after a 421.
class TestHandler final : private proxy::UpstreamStreamHandler {
 public:
  explicit TestHandler(SimHost& host) : upstream_stream_(host, *this, response_) { request_.method = "GET"; }

  void ask(std::vector<proxy::Connection*> connections) {
    exec::assume_on_loop();
    connections_ = std::move(connections);
    begin();
  }
  std::vector<int> responses;
  std::vector<std::string> broken;

 private:
  void begin() LOOP_ONLY {
    proxy::Connection& next = *connections_.front();
    connections_.erase(connections_.begin());
    response_.clear();
    upstream_stream_.begin(next, request_.method, false);
    upstream_stream_.send_head(request_, {});
    upstream_stream_.flush();
  }
  bool wants_response() const override { return true; }
  void on_body(std::string_view) override {}
  void on_trailer(std::string_view, std::string_view, bool) override {}
  AttemptState on_response_head() override {
    exec::assume_on_loop();
    responses.push_back(response_.status);
    if (response_.status != 421) return AttemptState::alive;
    pool::Lease none;
    upstream_stream_.abandon(pool::CloseCause::error, none);
    begin();
    return AttemptState::over;
  }
  AttemptState on_read_complete() override { return AttemptState::alive; }
  AttemptState on_response_end() override {
    exec::assume_on_loop();
    pool::Lease none;
    upstream_stream_.finish(none);
    return AttemptState::over;
  }
  AttemptState on_failure(proxy::StreamFailure failure) override {
    exec::assume_on_loop();
    broken.push_back(failure.fault.detail);
    pool::Lease none;
    upstream_stream_.abandon(pool::CloseCause::error, none);
    return AttemptState::over;
  }
  AttemptState on_writable() override { return AttemptState::alive; }
  AttemptState on_switched(std::string_view) override { return AttemptState::alive; }
  AttemptState on_tunnel_eof() override { return AttemptState::alive; }

  proxy::http::RequestHead request_;
  proxy::http::ResponseHead response_;
  proxy::H1UpstreamStream upstream_stream_;
  std::vector<proxy::Connection*> connections_;
};

TEST(H1UpstreamStream, DoesNotJudgeTheConnectionOfTheNextAttemptByTheEndOfTheLastOne) {
  exec::assume_on_loop();
  const Instant now{std::chrono::hours(1)};
  SimHost host(0, now);
  proxy::Connection first(1, dialed("HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n"), now);
  proxy::Connection second(2, dialed("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), now);
  TestHandler requester(host);
  requester.ask({&first, &second});
  for (int turns = 0; turns < 4; ++turns) host.loop().deferred.run_turn(100);
  EXPECT_EQ(requester.broken, std::vector<std::string>{});
  EXPECT_EQ(requester.responses, (std::vector<int>{421, 200}));
  EXPECT_EQ(nullptr, first.events);
  EXPECT_EQ(nullptr, second.events) << "an event between two leases would reach the stream of the first";
  host.loop().leases().end_event();
}

}  // namespace
}  // namespace carpool::test
