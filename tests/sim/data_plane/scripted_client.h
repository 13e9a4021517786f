// ScriptedClient: an HTTP/1 client of a plan. It checks each byte that it reads against the request that is being
// answered.
#pragma once

#include <deque>
#include <string>
#include <utility>

#include "tests/sim/data_plane/message_reader.h"
#include "tests/sim/data_plane/plane_client.h"
#include "tests/sim/data_plane/request_text.h"
#include "tests/sim/data_plane/response_check.h"

namespace carpool::test {

class ScriptedClient final : public PlaneClient {
 public:
  using PlaneClient::PlaneClient;

  bool send() override {
    if (over() || tunnelled() || wire.ended) return false;
    if (!held_.empty()) return send_held();
    if (busy()) return false;
    RequestRecord* const one = next();
    if (one == nullptr) return false;
    asked_.push_back(one);
    ask(*one);
    return true;
  }
  bool read(std::size_t most) override {
    if (left() || stopped_reading()) return false;
    const std::string bytes = wire.take(most);
    account_.log_bytes(bytes);
    count_read(bytes.size());
    if (!bytes.empty()) reader_.feed(bytes, *this);
    if (!bytes.empty() || !sees_close()) return !bytes.empty();
    account_.log("close", asked_.size());
    if (asked_.empty() || wire.broken) return true;
    // A pipelined request is lost with the connection if the response before it breaks off.
    if (!closes_ && plan_.pipelines == 0) check_lost(*asked_.front(), heads_.front() + 1);
    if (tunnelled()) {
      account_.check_tunnel(*asked_.front());
    } else if (wire.cut || !reader_.finish(*this)) {
      account_.check_cut(*asked_.front());
    }
    return true;
  }
  const RequestRecord* open_request() const override { return asked_.empty() ? nullptr : asked_.front(); }

  // ---- of the reader ----
  bool on_head(const ReadHead& head) {
    if (asked_.empty()) {
      if (head.status() != 408 && !wire.noisy())
        account_.complain("a client received a response that it did not ask for: " + head.first);
      return true;
    }
    RequestRecord& one = *asked_.front();
    const bool connected = one.plan.method == kConnect && head.status() == 200;
    if (connected || (one.plan.method == kUpgrade && head.status() == 101)) {
      open_tunnel(one, head.field(kMarkField));
      return true;
    }
    may_go_on_ |= head.status() == 100;
    closes_ |= head.field("connection") == "close" || one.plan.version != 0;
    if (one.plan.version != 0 && !head.field("transfer-encoding").empty()) {
      account_.complain(one, one.token + ": a transfer coding for HTTP/1.0");
    }
    if (one.last && head.status() >= 200 && one.plan.version == 0 && head.field("connection") != "close")
      account_.complain(one, one.token + ": a response does not announce that its connection ends");
    return check_head(account_, one, head.status(), head.field(kMarkField), head.field(kPadField),
                      head.field(kCauseField));
  }
  void on_body(std::string_view bytes) {
    if (!asked_.empty()) check_body(account_, *asked_.front(), bytes);
  }
  void on_tail(std::string_view value) {
    if (!asked_.empty()) check_tail(account_, *asked_.front(), value);
  }
  bool switched() const { return tunnelled(); }
  void on_end() {
    if (asked_.empty()) return;
    RequestRecord& one = *asked_.front();
    asked_.pop_front();
    heads_.pop_front();
    check_end(account_, one);
    if (asked_.empty() && !held_.empty()) answered_before_its_body(one);
  }
  void on_garbage() {
    if (!wire.noisy()) account_.complain("a client received bytes that are no response");
  }

 private:
  bool busy() const {
    return !asked_.empty() && (plan_.pipelines == 0 || asked_.back()->tunnels() || asked_.back()->plan.version == 1);
  }
  void ask(RequestRecord& one) {
    account_.note_asked(one);
    one.last = wire.drained;
    RequestText text = request_text(one);
    may_go_on_ = false;
    waited_ = 0;
    held_ = std::move(text.held);
    heads_.push_back(sent());
    send_bytes(text.now);
  }
  bool send_held() {
    const RequestRecord* const one = asked_.empty() ? nullptr : asked_.back();
    if (one != nullptr && one->plan.stalls != 0) return false;
    if (one != nullptr && expects(*one) && !may_go_on_ && (++waited_ < kWaits || one->plan.expect == Expecting::strict))
      return false;
    send_bytes(std::exchange(held_, {}));
    return true;
  }
  void send_bytes(const std::string& text) {
    wire.flying += text;
    count_sent(text.size());
    const bool last = !any_waiting() && held_.empty() && !asked_.empty() && !asked_.back()->tunnels();
    if (plan_.half != 0 && last) wire.ended = true;
  }
  // The final response came before the request was complete.
  void answered_before_its_body(RequestRecord& one) {
    const bool waited = one.plan.expect != 0 && one.plan.expect != Expecting::sends;
    if (!waited && one.plan.stalls == 0) return;  // the rest follows
    held_.clear();
    stop_asking();
    wire.ended = true;
  }
  void open_tunnel(RequestRecord& one, const std::string& mark) {
    account_.log("tunnel", one.received);
    if (!mark.empty() && mark.substr(0, 6) != one.token)
      account_.complain(one, one.token + " received a 101 of " + mark);
    if (one.plan.method == kUpgrade && !(wire.flying.empty() && held_.empty())) {
      account_.complain(one, one.token + " received 101 inside its body");
    }
    become_tunnel();
    one.answered = true;
    if (one.plan.method == kUpgrade || one.plan.chunked == 0) wire.flying += tunnel_bytes(one);
    wire.ended |= one.plan.gives_up != 0;
  }

  std::deque<RequestRecord*> asked_;
  std::deque<std::uint64_t> heads_;  // bytes sent before each of them
  bool closes_ = false;              // a response announced the connection's end
  MessageReader reader_;
  std::string held_;        // the rest of the last request
  bool may_go_on_ = false;  // 100 (Continue) arrived
  int waited_ = 0;
};

}  // namespace carpool::test
