// ObedientOrigin: an origin at the far end of a wire in memory that does only what a test says, and ObedientSession:
// the fixture with a session to it on loop 0, for requests of loops 0 and 1.
#pragma once

#include <gtest/gtest.h>

#include <list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "proxy/net/io_limits.h"
#include "tests/sim/session_world.h"

namespace carpool::test {

class ObedientOrigin final : private proxy::http::H2Sink {
 public:
  struct Frame {
    unsigned type, flags;
    std::uint32_t stream;
  };
  struct Request final : proxy::http::H2StreamUser {
    proxy::http::H2Stream* stream = nullptr;  // null once it is closed
    proxy::http::StreamId id = 0;
    std::size_t received = 0, sent = 0;  // bytes of the bodies
    bool ended = false;
    void on_head(proxy::http::ResponseHead&) override {}
    void on_body(std::string_view bytes) override { received += bytes.size(); }
    void on_trailers(const proxy::http::Fields&) override {}
    void on_end() override { ended = true; }
    void on_sent(std::size_t bytes) override { sent += bytes; }
    void on_closed(proxy::http::H2Error) override { stream = nullptr; }
  };
  static constexpr unsigned kData = 0, kHeaders = 1, kReset = 3, kPing = 6, kGoaway = 7;
  static constexpr unsigned kAck = 1, kEndStream = 1;

  explicit ObedientOrigin(const proxy::http::H2Options& options)
      : session_(proxy::http::H2Role::server, options, *this) {}
  void receive(std::string_view bytes, Instant now) {
    reader_.pass(bytes, [this](const WireFrame& frame) { frames.push_back({frame.type, frame.flags, frame.stream}); });
    EXPECT_TRUE(session_.receive(bytes, now));
  }
  std::string pull(Instant now) {
    std::string out;
    session_.pull(out, SIZE_MAX, now);
    return out;
  }
  proxy::http::H2Session& session() { return session_; }
  Request& newest() { return requests.back(); }
  // Responds to the newest request. `length`: the value of Content-Length, if any.
  void respond(const char* status, bool end, const char* length = nullptr) {
    fields_.clear();
    fields_.add(":status", status);
    if (length != nullptr) fields_.add("content-length", length);
    session_.respond(*newest().stream, fields_, end);
  }
  void send_body(Request& request, std::size_t size) { session_.body(*request.stream, std::string(size, 'r')); }
  std::size_t count(unsigned type, unsigned flags = 0) const {
    std::size_t all = 0;
    for (const Frame& frame : frames) all += frame.type == type && (frame.flags & flags) == flags ? 1 : 0;
    return all;
  }

  std::vector<Frame> frames;  // that it received
  std::list<Request> requests;

 private:
  proxy::http::H2StreamUser* on_request(proxy::http::H2Stream& stream, proxy::http::RequestHead&) override {
    Request& request = requests.emplace_back();
    request.stream = &stream;
    request.id = stream.id();
    return &request;
  }
  void on_refused_head(proxy::http::H2Stream&, FaultKind) override { ADD_FAILURE(); }
  void on_settings(const proxy::http::H2PeerSettings&) override {}
  void on_goaway(proxy::http::StreamId, proxy::http::H2Error) override {}
  void on_ping_ack(std::uint64_t) override {}

  proxy::http::H2Session session_;
  FrameReader reader_{24};
  proxy::http::H2Fields fields_;
};

// Asker: an exchange that does what the test says.
class Asker final : public pool::Borrower, private proxy::UpstreamStreamHandler {
 public:
  Asker(SessionWorld& world, LoopId loop) : world_(world), loop_(loop), h2_(*world.hosts[loop], *this, response) {}

  void ask(const char* method, proxy::http::Framing framing = proxy::http::Framing::none) {
    exec::assume_on_loop();
    head_.clear();
    head_.method = method;
    head_.target = "/";
    head_.framing = framing;
    received = heads = trailers = ends = failures = writable = 0;
    world_.on(loop_);
    auto result = world_.destination->borrow(*this, {}, world_.now);
    if (auto* lease = std::get_if<pool::Lease>(&result)) begin(std::move(*lease));
  }
  void say(std::size_t size) {
    exec::assume_on_loop();
    const std::string bytes(size, 'q');
    upstream_stream_->send_body(bytes);
    upstream_stream_->flush();
  }
  void end() {
    exec::assume_on_loop();
    upstream_stream_->send_end({});
    upstream_stream_->flush();
  }
  void take() {
    exec::assume_on_loop();
    wants = true;
    static_cast<void>(upstream_stream_->resume_reading());
  }
  void leave() {
    exec::assume_on_loop();
    world_.on(loop_);
    static_cast<void>(std::exchange(upstream_stream_, nullptr)->abandon(pool::CloseCause::error, lease_));
    if (lease_) lease_.release(world_.now);
  }
  std::size_t backlog() const {
    exec::assume_on_loop();
    return upstream_stream_->backlog();
  }

  bool wants = true, more = true;  // what it says to wants_response() and may_buffer_more()
  std::size_t most = SIZE_MAX;     // bytes of a response that it wants
  std::size_t received = 0, heads = 0, trailers = 0, ends = 0, failures = 0, writable = 0;
  proxy::http::ResponseHead response;
  std::string why;  // it failed
  std::optional<proxy::RetryReason> unprocessed;
  bool asks_h1 = false;  // the origin did, by its failure

 private:
  void on_lease(pool::Lease lease) override {
    exec::assume_on_loop();
    begin(std::move(lease));
  }
  void on_refused(Fault fault) override { why = fault.detail; }
  void begin(pool::Lease lease) LOOP_ONLY {
    lease_ = std::move(lease);
    response.clear();
    auto& session = static_cast<proxy::H2Connection&>(*lease_);
    if (lease_.home() == loop_) {
      h2_.begin(session);
      upstream_stream_ = &h2_;
    } else {
      proxy::CrossLoopStream& remote = world_.hosts[loop_]->acquire_remote(*world_.hosts[lease_.home()]);
      remote.begin(session, *this, response);
      upstream_stream_ = &remote;
    }
    proxy::http::ForwardRules rules;
    rules.via_pseudonym = "carpool";
    rules.host = "origin.test";
    rules.path = head_.target;
    upstream_stream_->send_head(head_, rules);
    if (head_.framing == proxy::http::Framing::none || head_.framing == proxy::http::Framing::length)
      upstream_stream_->send_end({});
    upstream_stream_->flush();
  }
  bool wants_response() const override { return wants && received < most; }
  bool may_buffer_more() const override { return more; }
  proxy::AttemptState on_response_head() override { return ++heads, proxy::AttemptState::alive; }
  void on_body(std::string_view bytes) override { received += bytes.size(); }
  void on_trailer(std::string_view, std::string_view, bool) override { ++trailers; }
  proxy::AttemptState on_read_complete() override { return proxy::AttemptState::alive; }
  proxy::AttemptState on_response_end() override LOOP_ONLY {
    ++ends;
    static_cast<void>(std::exchange(upstream_stream_, nullptr)->finish(lease_));
    if (lease_) lease_.release(world_.now);
    return proxy::AttemptState::over;
  }
  proxy::AttemptState on_failure(proxy::StreamFailure failure) override {
    ++failures;
    why = failure.fault.detail;
    unprocessed = failure.unprocessed;
    asks_h1 = failure.ask_h1;
    leave();
    return proxy::AttemptState::over;
  }
  proxy::AttemptState on_writable() override { return ++writable, proxy::AttemptState::alive; }
  proxy::AttemptState on_switched(std::string_view) override { return proxy::AttemptState::alive; }
  proxy::AttemptState on_tunnel_eof() override { return proxy::AttemptState::alive; }

  SessionWorld& world_;
  const LoopId loop_;
  proxy::http::RequestHead head_;
  proxy::H2UpstreamStream h2_;
  proxy::UpstreamStream* upstream_stream_ = nullptr;
  pool::Lease lease_;
};

class ObedientSession : public ::testing::Test {
 protected:
  ObedientSession() {
    pool::Limits limits;
    limits.size = 1;
    limits.expected_streams = 100;
    pool::Origin origin;
    origin.host = "origin.test";
    origin.port = 80;
    world_.destination = *directory_.at(origin, limits);
    world_.context.destination = world_.destination;
  }
  ~ObedientSession() override {
    travel();
    world_.on(0);
    directory_.stop(world_.now);
    travel();
    EXPECT_EQ(world_.planned.wrong, "");
  }
  // Establishes the session with a first exchange.
  void establish(const proxy::http::H2Options& options = {}) {
    origin_.emplace(options);
    near_.ask("GET");
    travel();
    origin_->respond("200", true);
    travel();
    ASSERT_EQ(near_.ends, 1U);
    origin_->frames.clear();
    wire().room = std::size_t{1} << 20;
  }
  Wire& wire() { return world_.links.front().wire; }
  // Delivers what is on the wire in both directions.
  void land() {
    if (world_.links.empty()) return;
    origin_->receive(wire().deliver_up(SIZE_MAX), world_.now);
    answer();
  }
  // Likewise, what the origin says only.
  void answer() {
    wire().sent_down(origin_->pull(world_.now));
    if (wire().deliver_down(SIZE_MAX)) wire().ready = true;
  }
  void turn(LoopId loop) { world_.turn(loop, true); }
  void travel() {
    for (int rounds = 0; rounds < 200; ++rounds) {
      turn(0);
      turn(1);
      land();
    }
  }
  std::uint64_t closed_for(pool::CloseCause cause) {
    return world_.destination->snapshot(world_.now).closed[static_cast<std::size_t>(cause)];
  }

  Random random_{1};
  SessionWorld world_{random_, 2};
  pool::Directory directory_{pool::DirectoryLimits{}, world_, 2};
  std::optional<ObedientOrigin> origin_;
  Asker near_{world_, 0}, far_{world_, 1};
};

}  // namespace carpool::test
