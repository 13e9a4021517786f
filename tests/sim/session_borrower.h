// SessionBorrower: an exchange without its client. It borrows from the real pool, uses the real upstream streams, lets
// the real retry policy decide about retries, and checks every byte it receives.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "proxy/exchange/request_body.h"
#include "proxy/exchange/retry_state.h"
#include "proxy/net/io_limits.h"
#include "proxy/net/write_queue.h"
#include "proxy/upstream/origin/retry_budget.h"
#include "tests/sim/session_world.h"

namespace carpool::test {

class SessionBorrower final : public pool::Borrower, private proxy::UpstreamStreamHandler {
 public:
  enum class State : std::uint8_t { idle, borrowing, forwarding, relaying };

  SessionBorrower(SessionWorld& world, Random& random, LoopId loop)
      : world_(world), random_(random), loop_(loop), h2_(*world.hosts[loop], *this, response_) {}

  State state() const { return state_; }
  LoopId loop() const { return loop_; }
  std::uint64_t number() const { return number_; }
  void note_idle() {
    exec::assume_on_loop();
    if (state_ == State::idle) return;
    planned_one().held = upstream_stream_ != nullptr ? upstream_stream_->backlog() : 0;
    planned_one().takes = wants_response();
  }

  void begin(std::uint64_t number) {
    exec::assume_on_loop();
    number_ = number;
    logged_ = 0;
    untaken_ = 0;
    retries_ = {};
    ended_ = false;
    const bool body = chance(random_, 40) || !padding.empty();
    left_ = body ? pick(random_, chance(random_, 30) ? 300000 : 3000) : 0;
    said_ = 0;
    planned_one().upload = left_;
    head_.clear();
    head_.method = body ? "POST" : "GET";
    head_.target = "/" + std::to_string(number);
    head_.framing = body ? proxy::http::Framing::chunked : proxy::http::Framing::none;
    head_.fields.add("x-number", std::to_string(number));
    path_ = head_.target;
    upload_.begin(head_, 64 * 1024);
    if (!body) upload_.end(nullptr);
    if (!padding.empty()) {
      head_.fields.add("x-padding", padding);
      upload_.add_trailer("x-padding", padding, false);
    }
    state_ = State::borrowing;
    borrow(false);
  }

  std::string padding;  // in the head and the trailers of each request
  // Begins that request from within the end of the current response.
  void begin_at_end(std::uint64_t number) { next_ = number; }

  // Performs one action that its client may take.
  void act(bool kind) {
    exec::assume_on_loop();
    world_.on(loop_);
    if (state_ == State::idle) return;
    if (!kind && chance(random_, 2)) return leave();
    if (chance(random_, 60)) say();
    if (state_ != State::idle && untaken_ != 0 && (kind || chance(random_, 50))) {
      untaken_ -= kind ? untaken_ : 1 + pick(random_, static_cast<std::uint32_t>(untaken_));
      if (upstream_stream_ != nullptr && wants_response()) static_cast<void>(upstream_stream_->resume_reading());
    }
  }

  void on_lease(pool::Lease lease) override {
    exec::assume_on_loop();
    if (state_ != State::borrowing || world_.here() != loop_) return world_.planned.complain("a lease for nobody");
    begin(std::move(lease));
  }
  void on_refused(Fault) override {
    if (state_ != State::borrowing) return world_.planned.complain("a refusal for nobody");
    end();
  }

 private:
  PlannedResponse& planned_one() { return world_.planned.all[number_]; }
  // The response whose head arrived.
  Response reported_response() {
    const std::size_t attempt = std::strtoul(std::string(response_.fields.get("x-attempt")).c_str(), nullptr, 10);
    return attempt < planned_one().responses.size() ? planned_one().responses[attempt] : Response{};
  }

  void borrow(bool fresh) LOOP_ONLY {
    world_.on(loop_);
    pool::BorrowRequest want;
    want.new_connection_only = fresh;
    auto result = world_.destination->borrow(*this, want, world_.now);
    if (auto* lease = std::get_if<pool::Lease>(&result)) return begin(std::move(*lease));
    if (std::get_if<Fault>(&result) != nullptr) end();
  }
  void begin(pool::Lease lease) LOOP_ONLY {
    lease_ = std::move(lease);
    state_ = State::forwarding;
    response_.clear();
    auto& session = static_cast<proxy::H2Connection&>(*lease_);
    if (lease_.home() == loop_) {
      h2_.begin(session);
      upstream_stream_ = &h2_;
    } else {
      proxy::CrossLoopStream& remote = world_.hosts[loop_]->acquire_remote(*world_.hosts[lease_.home()]);
      remote.begin(session, *this, response_);
      upstream_stream_ = &remote;
    }
    if (!upstream_stream_->usable()) {
      proxy::StreamFailure ended;
      ended.connection_ended = true;
      ended.any_byte_sent = false;
      static_cast<void>(on_failure(std::move(ended)));
      return;
    }
    proxy::http::ForwardRules rules;
    rules.via_pseudonym = "carpool-sim";
    rules.host = "origin.test";
    rules.path = path_;
    upstream_stream_->send_head(head_, rules);
    upload_.start(*upstream_stream_);
    upstream_stream_->flush();
  }
  // Sends as much of the request body as the stream accepts.
  void say() LOOP_ONLY {
    if (upload_.ended()) return;
    const bool room =
        upstream_stream_ != nullptr ? upstream_stream_->backlog() < proxy::kHighWatermark : !upload_.full();
    if (!room) return;
    const std::size_t size = std::min<std::size_t>(left_, 1 + pick(random_, 20000));
    upload_.add(body_piece(number_, said_, size, false), upstream_stream_);
    said_ += size;
    planned_one().said = said_;
    left_ -= size;
    if (left_ == 0) upload_.end(upstream_stream_);
    if (upstream_stream_ != nullptr) upstream_stream_->flush();
  }
  // The client disconnects.
  void leave() LOOP_ONLY {
    if (state_ == State::borrowing) world_.destination->cancel(*this, world_.now);
    if (upstream_stream_ != nullptr) give_back(pool::CloseCause::error);
    end();
  }
  void give_back(pool::CloseCause cause) LOOP_ONLY {
    const auto unclean = std::exchange(upstream_stream_, nullptr)->abandon(cause, lease_);
    if (!lease_) return;
    unclean ? lease_.discard(*unclean, world_.now) : lease_.release(world_.now);
  }
  void end() {
    if (++planned_one().ends != 1 || std::exchange(ended_, true)) world_.planned.complain("a request ended twice");
    state_ = State::idle;
    upload_.finish();
  }

  // ---- UpstreamStreamHandler ----
  bool wants_response() const override { return untaken_ < proxy::kHighWatermark; }
  proxy::AttemptState on_response_head() override {
    check("a head");
    if (response_.fields.get("x-number") != std::to_string(number_)) world_.planned.complain("a head of another");
    if (response_.status >= 200) state_ = State::relaying;
    return proxy::AttemptState::alive;
  }
  void on_body(std::string_view bytes) override {
    check("a body");
    if (state_ != State::relaying) world_.planned.complain("a body without a head");
    if (!is_body(number_, logged_, bytes, true)) world_.planned.complain("a body of another, or out of order");
    logged_ += bytes.size();
    untaken_ += bytes.size();
  }
  void on_trailer(std::string_view name, std::string_view value, bool /*sensitive*/) override {
    check("a trailer");
    if (name == "x-number" && value != std::to_string(number_)) world_.planned.complain("a trailer of another");
  }
  proxy::AttemptState on_read_complete() override LOOP_ONLY {
    check("a piece");
    if (!chance(random_, 1)) return proxy::AttemptState::alive;
    leave();
    return proxy::AttemptState::over;
  }
  proxy::AttemptState on_response_end() override LOOP_ONLY {
    check("an end");
    if (state_ != State::relaying) world_.planned.complain("an end without a head");
    const Response response = reported_response();
    if (!response.whole || logged_ != response.bytes) world_.planned.complain("a cut answer was taken for whole");
    const auto unclean = std::exchange(upstream_stream_, nullptr)->finish(lease_);
    if (lease_) unclean ? lease_.discard(*unclean, world_.now) : lease_.release(world_.now);
    end();
    if (next_ != 0) begin(std::exchange(next_, 0));
    return proxy::AttemptState::over;
  }
  proxy::AttemptState on_failure(proxy::StreamFailure failure) override LOOP_ONLY {
    check("a failure");
    const bool proven = failure.unprocessed || !failure.any_byte_sent;
    const proxy::AttemptResult result =
        state_ == State::relaying ? proxy::AttemptResult::answered : failure.attempt_result(lease_.reused());
    const proxy::Repeatable request = proxy::repeatable(head_.method, upload_.expected(), upload_.replayable(), false);
    const proxy::RetryDecision decision = retries_.decide(result, request, 1, budget_);
    give_back(pool::CloseCause::error);
    if (decision.outcome != proxy::RetryOutcome::retry) {
      end();
      return proxy::AttemptState::over;
    }
    if (decision.reason == proxy::RetryReason::idempotent_reused) {
      ++planned_one().may_repeat;
    } else if (!proven) {
      world_.planned.complain("replayed without a proof");
    }
    state_ = State::borrowing;
    borrow(true);
    return proxy::AttemptState::over;
  }
  proxy::AttemptState on_writable() override {
    check("room");
    return proxy::AttemptState::alive;
  }
  proxy::AttemptState on_switched(std::string_view) override { return proxy::AttemptState::alive; }
  proxy::AttemptState on_tunnel_eof() override { return proxy::AttemptState::alive; }

  void check(const char* what) {
    if (state_ != State::forwarding && state_ != State::relaying) {
      world_.planned.complain(std::string(what) + " was told to one who does not listen");
    }
    if (world_.here() != loop_) world_.planned.complain(std::string(what) + " was told on another loop");
  }

  SessionWorld& world_;
  Random& random_;
  const LoopId loop_;
  State state_ = State::idle;
  proxy::http::RequestHead head_;
  proxy::http::ResponseHead response_;
  proxy::H2UpstreamStream h2_;
  proxy::UpstreamStream* upstream_stream_ = nullptr;
  proxy::RequestBody upload_;
  pool::Lease lease_;
  std::string path_;
  std::uint64_t number_ = 0, logged_ = 0, said_ = 0, next_ = 0;
  std::size_t left_ = 0;     // of the request body
  std::size_t untaken_ = 0;  // of the response, by the client
  proxy::RetryState retries_;
  proxy::RetryBudget budget_;  // without a limit
  bool ended_ = true;
};

}  // namespace carpool::test
