// ScriptedClient: an HTTP/1.1 client of a plan. It checks each byte that it reads against the request whose turn it is.
#pragma once

#include <deque>
#include <string>
#include <utility>

#include "tests/sim/data_plane/message_reader.h"
#include "tests/sim/data_plane/plane_client.h"
#include "tests/sim/data_plane/response_check.h"

namespace carpool::test {

class ScriptedClient final : public PlaneClient {
 public:
  using PlaneClient::PlaneClient;

  bool send() override {
    if (over() || tunnelled() || (held_.empty() && busy())) return false;
    if (!held_.empty()) {
      wire.flying += std::exchange(held_, {});
      return true;
    }
    RequestRecord* const one = next();
    if (one == nullptr) return false;
    asked_.push_back(one);
    const std::string host = "o" + std::to_string(one->plan.origin) + ".test";
    const bool connect = one->plan.method == kConnect;
    std::string text = one->method() + " http://" + host + "/" + one->token + " HTTP/1.1\r\nHost: " + host +
                       "\r\nX-Of: " + one->token + "\r\n";
    if (connect) {
      text = "CONNECT " + host + ":443 HTTP/1.1\r\nHost: " + host + ":443\r\n\r\n";
      if (one->plan.chunked != 0) text += tunnel_bytes(*one);
    } else if (one->plan.method == kUpgrade) {
      text += "Connection: Upgrade\r\nUpgrade: marks\r\n";
      append_body(text, *one);
    } else {
      append_body(text, *one);
    }
    // A client of an upgrade ends its body later: 101 may come first.
    if (one->plan.method == kUpgrade && one->body_size() != 0) {
      held_ = text.substr(text.size() - 5);
      text.resize(text.size() - 5);
    }
    wire.flying += text;
    count_sent(text.size());
    return true;
  }
  bool read(std::size_t most) override {
    if (left()) return false;
    const std::string bytes = wire.take(most);
    if (!bytes.empty()) reader_.feed(bytes, *this);
    if (!bytes.empty() || !sees_close()) return !bytes.empty();
    account_.log("close", asked_.size());
    if (asked_.empty() || wire.broken) return true;
    tunnelled() ? account_.check_tunnel(*asked_.front()) : account_.check_cut(*asked_.front());
    return true;
  }
  const RequestRecord* open_request() const override { return asked_.empty() ? nullptr : asked_.front(); }

  // ---- of the reader ----
  bool on_head(const ReadHead& head) {
    if (asked_.empty()) {
      if (head.status() != 408)
        account_.complain("a client received a response that it did not ask for: " + head.first);
      return true;
    }
    RequestRecord& one = *asked_.front();
    const bool connected = one.plan.method == kConnect && head.status() == 200;
    if (connected || (one.plan.method == kUpgrade && head.status() == 101)) {
      open_tunnel(one, head.field(kMarkField));
      return true;
    }
    return check_head(account_, one, head.status(), head.field(kMarkField));
  }
  void on_body(std::string_view bytes) {
    if (!asked_.empty()) check_body(account_, *asked_.front(), bytes);
  }
  bool switched() const { return tunnelled(); }
  void on_end() {
    if (asked_.empty()) return;
    RequestRecord& one = *asked_.front();
    asked_.pop_front();
    check_end(account_, one);
  }
  void on_garbage() { account_.complain("a client received bytes that are no response"); }

 private:
  bool busy() const { return !asked_.empty() && (plan_.pipelines == 0 || asked_.back()->tunnels()); }
  static std::string tunnel_bytes(const RequestRecord& one) { return one.token + marked(one.token, one.plan.size); }
  void open_tunnel(RequestRecord& one, const std::string& mark) {
    account_.log("tunnel", one.received);
    if (!mark.empty() && mark.substr(0, 6) != one.token) account_.complain(one.token + " received a 101 of " + mark);
    if (one.plan.method == kUpgrade && !(wire.flying.empty() && held_.empty())) {
      account_.complain(one.token + " received 101 inside its body");
    }
    become_tunnel();
    one.answered = true;
    if (one.plan.method == kUpgrade || one.plan.chunked == 0) wire.flying += tunnel_bytes(one);
    wire.ended |= one.plan.gives_up != 0;
  }
  void append_body(std::string& text, const RequestRecord& one) const {
    const std::string body = marked(one.token, one.body_size());
    if (body.empty() && one.plan.chunked == 0) {
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
  std::deque<RequestRecord*> asked_;
  MessageReader reader_;
  std::string held_;  // the end of a body
};

}  // namespace carpool::test
