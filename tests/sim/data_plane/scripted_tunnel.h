// ScriptedTunnel: the far end of a tunnel, after CONNECT or 101. The client's bytes begin with its request's token; the
// origin's are those of the request's response. `surplus`: the origin sends nothing before the
// client's last byte, or its FIN if the client ends first.
#pragma once

#include <string>
#include <utility>

#include "tests/sim/data_plane/account.h"

namespace carpool::test {

class ScriptedTunnel {
 public:
  ScriptedTunnel(Account& account, VirtualWire& wire) : account_(account), wire_(wire) {}

  // The request is known after 101. Returns true if the origin sends first.
  bool begin(RequestRecord& one) {
    request_ = &one;
    response_ = one.attempts.back().response;
    if (response_.end == ResponseEnd::surplus) return false;
    speak();
    return true;
  }
  bool read(std::size_t most) {
    const std::string bytes = wire_.take(most);
    account_.log_bytes(bytes);
    if (!wire_.broken) feed(bytes);
    const bool over = (wire_.shut || wire_.gone) && wire_.outgoing.empty() && !over_;
    if (over) see_end();
    return over || !bytes.empty();
  }
  void feed(std::string_view bytes) {
    const std::size_t head = std::min(bytes.size(), kToken - std::min(kToken, name_.size()));
    name_.append(bytes.substr(0, head));
    bytes.remove_prefix(head);
    if (name_.size() == kToken && request_ == nullptr && !lost_) open();
    if (request_ == nullptr) return;
    if (name_ != request_->token.substr(0, name_.size()))
      account_.complain(*request_, request_->token + ": a tunnel of " + name_);
    if (!bears_mark(request_->token, received_, bytes)) {
      account_.complain(*request_, request_->token + ": a tunnel's origin received foreign, lost or doubled bytes");
    }
    received_ += bytes.size();
    request_->sent = received_;
    const bool whole = received_ == request_->plan.size && name_.size() == kToken;
    if (whole && request_->plan.gives_up != 1) speak();  // otherwise it waits for the client's FIN
  }
  bool reset_when_sent() {
    if (!resets_ || !wire_.flying.empty() || wire_.broken) return false;
    wire_.reset();
    return true;
  }

 private:
  static constexpr std::size_t kToken = 6;

  void open() {
    RequestRecord* const one = account_.find("/" + name_);
    lost_ = one == nullptr || one->token != name_ || one->plan.method != kConnect;
    if (lost_ && !account_.noisy_clients) account_.complain("a tunnel of nobody: " + name_);
    if (lost_) return;
    account_.check_attempt(*one, wire_, false);
    AttemptRecord& attempt = one->attempts.emplace_back();
    if (!one->plan.responses.empty()) attempt.response = one->plan.responses[0];
    attempt.wire = &wire_;
    begin(*one);
  }
  void speak() {
    if (std::exchange(spoke_, true)) return;
    wire_.flying += marked(request_->token, response_.size);
    resets_ = response_.end == ResponseEnd::reset;
    wire_.ended = !resets_ && response_.end != ResponseEnd::silent;
    account_.log("tunnel speaks", response_.size);
  }
  // The client ended in order: all its bytes must have arrived.
  void see_end() {
    over_ = true;
    if (request_ == nullptr) {
      wire_.ended = true;
      return;
    }
    account_.log("tunnel ends", received_);
    if (wire_.shut && !wire_.broken && received_ != request_->plan.size) {
      account_.complain(*request_, request_->token + ": a tunnel lost bytes of its client");
    }
    speak();
  }

  Account& account_;
  VirtualWire& wire_;
  RequestRecord* request_ = nullptr;
  ResponsePlan response_;
  std::string name_;
  std::uint64_t received_ = 0;
  bool spoke_ = false, resets_ = false, over_ = false, lost_ = false;
};

}  // namespace carpool::test
