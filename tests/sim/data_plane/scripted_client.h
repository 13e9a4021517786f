// ScriptedClient: an HTTP/1.1 client of a plan. It checks each byte that it reads against the request whose turn it is.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "tests/sim/data_plane/account.h"
#include "tests/sim/data_plane/message_reader.h"
#include "tests/sim/data_plane/virtual_wire.h"

namespace carpool::test {

class ScriptedClient {
 public:
  ScriptedClient(const ClientPlan& plan, Account& account, std::size_t room)
      : plan_(plan), account_(account), wire(room) {
    for (const RequestPlan& one : plan.requests) waiting_.push_back(&account.add(one));
  }

  // Sends the next request, if it may. Returns true if it did something.
  bool send() {
    if (waiting_.empty() || over() || (!asked_.empty() && plan_.pipelines == 0)) return false;
    RequestRecord& one = *waiting_.front();
    waiting_.pop_front();
    asked_.push_back(&one);
    std::string text = one.method() + " http://o" + std::to_string(one.plan.origin) + ".test/" + one.token +
                       " HTTP/1.1\r\nHost: o" + std::to_string(one.plan.origin) + ".test\r\nX-Of: " + one.token +
                       "\r\n";
    append_body(text, one);
    sent_ += text.size();
    wire.flying += text;
    if (plan_.leaves_after != 0 && sent_ >= plan_.leaves_after) leaving_ = true;
    return true;
  }
  // Bytes arrive at the proxy; a client that leaves resets its connection.
  bool land(std::size_t most) {
    if (over()) return false;
    if (leaving_ && landed_ + most >= plan_.leaves_after) {
      left_ = true;
      wire.reset();
      return true;
    }
    landed_ += std::min(most, wire.flying.size());
    return wire.land(most);
  }
  bool read(std::size_t most) {
    if (left_) return false;
    const std::string bytes = wire.take(most);
    if (!bytes.empty()) reader_.feed(bytes, *this);
    if (!bytes.empty() || !(wire.shut || wire.gone) || !wire.outgoing.empty() || closed_) return !bytes.empty();
    closed_ = true;
    account_.log("close", asked_.size());
    if (!wire.ended) wire.ended = true;
    check_cut();
    return true;
  }
  bool over() const { return left_ || closed_ || wire.gone || wire.shut; }
  bool done() const { return over() || (waiting_.empty() && asked_.empty()); }
  const RequestRecord* open_request() const { return asked_.empty() ? nullptr : asked_.front(); }
  bool leaving() const { return leaving_; }

  // ---- of the reader ----
  bool on_head(const ReadHead& head) {
    if (asked_.empty()) {
      if (head.status() != 408)
        account_.complain("a client received a response that it did not ask for: " + head.first);
      return true;
    }
    RequestRecord& one = *asked_.front();
    const std::string mark = head.field(kMarkField);
    account_.log(head.first, one.received);
    if (!mark.empty() && mark.substr(0, 6) != one.token) {
      account_.complain(one.token + " received a head of " + mark);
      return true;
    }
    if (head.status() < 200) {
      if (mark.empty() && head.status() != 100) account_.complain(one.token + " received an unmarked interim response");
      if (++one.informational > 64U * one.attempts.size() + 1) account_.complain(one.token + ": too many 1xx");
      return true;
    }
    if (mark.empty() && head.status() < 400) account_.complain(one.token + ": a response of nobody: " + head.first);
    if (one.answered) account_.complain(one.token + " received two final heads");
    one.answered = true;
    one.attempt = mark.empty() ? SIZE_MAX : std::strtoul(mark.substr(7).c_str(), nullptr, 10);
    return one.method() != "HEAD" && head.status() != 204 && head.status() != 304;
  }
  void on_body(std::string_view bytes) {
    if (asked_.empty()) return;
    RequestRecord& one = *asked_.front();
    if (one.attempt != SIZE_MAX && !bears_mark(one.token, one.received, bytes)) {
      account_.complain(one.token + " received foreign, lost or doubled bytes");
    }
    one.received += bytes.size();
    account_.log("body", bytes.size());
  }
  void on_end() {
    if (asked_.empty()) return;
    RequestRecord& one = *asked_.front();
    asked_.pop_front();
    ++one.ends;
    account_.log("end", one.received);
    account_.check_complete(one);
  }
  void on_garbage() { account_.complain("a client received bytes that are no response"); }

 private:
  void append_body(std::string& text, const RequestRecord& one) const {
    const std::string body = marked(one.token, one.plan.size);
    if (one.plan.size == 0 && one.plan.chunked == 0) {
      text += one.method() == "POST" || one.method() == "PUT" ? "Content-Length: 0\r\n\r\n" : "\r\n";
    } else if (one.plan.chunked == 0) {
      text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    } else {
      text += "Transfer-Encoding: chunked\r\n\r\n";
      append_chunks(text, body);
    }
  }
  static void append_chunks(std::string& text, std::string_view body) {
    char head[16];
    for (std::size_t at = 0; at < body.size(); at += 1000) {
      const std::string_view piece = body.substr(at, 1000);
      std::snprintf(head, sizeof head, "%zx\r\n", piece.size());
      text.append(head).append(piece).append("\r\n");
    }
    text += "0\r\n\r\n";
  }
  // The proxy closed: what the origin sent of a truncated body must have arrived before.
  // A reset of the origin's connection loses what the proxy had not read.
  void check_cut() {
    if (asked_.empty()) return;
    const RequestRecord& one = *asked_.front();
    if (!one.answered || one.attempt == SIZE_MAX) return;
    const AttemptRecord& attempt = one.attempts[one.attempt];
    if (attempt.answer.end == AnswerEnd::fin && attempt.answer.framing == 0 && !attempt.wire->broken &&
        one.received + 1 < attempt.answer.size) {
      account_.complain(one.token + ": bytes of a truncated response were lost");
    }
    if (attempt.answer.end == AnswerEnd::whole && attempt.answer.status != 0 && one.plan.size == 0 && !wire.ended) {
      account_.complain(one.token + ": a whole response was cut");
    }
  }

  const ClientPlan& plan_;
  Account& account_;
  std::deque<RequestRecord*> waiting_, asked_;
  MessageReader reader_;
  std::uint64_t sent_ = 0, landed_ = 0;
  bool leaving_ = false, left_ = false, closed_ = false;

 public:
  VirtualWire wire;
};

}  // namespace carpool::test
