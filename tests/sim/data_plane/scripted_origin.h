// ScriptedOrigin: the far end of one HTTP/1.1 connection to an origin. It responds to each attempt as planned, in bytes
// that carry the request's mark.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "tests/sim/data_plane/account.h"
#include "tests/sim/data_plane/message_reader.h"
#include "tests/sim/data_plane/request_text.h"
#include "tests/sim/data_plane/scripted_tunnel.h"
#include "tests/sim/data_plane/virtual_wire.h"

namespace carpool::test {

// Bytes after a response that no request asked for.
inline constexpr std::string_view kSurplus = "HTTP/1.1 200 OK\r\nX-Of: surplus\r\nContent-Length: 4\r\n\r\nEVIL";

class ScriptedOrigin {
 public:
  ScriptedOrigin(Account& account, VirtualWire& wire) : account_(account), wire_(wire) {}

  bool read(std::size_t most) {
    if (stopped_reading_) return false;
    const std::string bytes = wire_.take(most);
    account_.log_bytes(bytes);
    if (!bytes.empty() && (!wire_.ended || switched_)) reader_.feed(bytes, *this);
    const bool end = switched_ && tunnel_.read(0);
    return go_on() || !bytes.empty() || end;
  }
  // A connection that is to be reset is reset once the earlier bytes have arrived.
  bool reset_when_sent() {
    if (switched_) return tunnel_.reset_when_sent();
    if (!resets_ || !wire_.flying.empty() || wire_.broken) return false;
    wire_.reset();
    return true;
  }

  // ---- of the reader ----
  bool on_head(const ReadHead& head) {
    const std::size_t space = head.first.find(' ');
    current_ = account_.find(std::string_view(head.first).substr(0, head.first.find(' ', space + 1)));
    if (current_ == nullptr || head.field(kMarkField) != current_->token ||
        head.field(kProofField) != proof_of(current_->token)) {
      // Noise in a client's bytes may have produced this request.
      if (!account_.noisy_clients) account_.complain("an origin received a request of nobody: " + head.first);
      if (!switched_) wire_.flying += "HTTP/1.1 404 Nobody\r\nX-Of: nobody\r\nContent-Length: 0\r\n\r\n";
      current_ = nullptr;
      ++served_;
      return true;
    }
    account_.log(head.first, served_);
    account_.check_attempt(*current_, wire_, false);
    AttemptRecord& attempt = current_->attempts.emplace_back();
    const auto& responses = current_->plan.responses;
    if (current_->attempts.size() <= responses.size()) attempt.response = responses[current_->attempts.size() - 1];
    attempt.was_idle = served_++ != 0 || wire_.opened < wire_.first_write.value_or(Instant{});
    attempt.wire = &wire_;
    attempt.consumed = wire_.consumed;
    received_ = 0;
    answered_ = false;
    tail_ = false;
    quits_in_ = 0;
    credentials_ = head.field("authorization").starts_with("Negotiate");
    account_.check_pad(*current_, current_->plan.fields, head.field(kPadField));
    stopped_reading_ = wire_.malformed_end = attempt.response.stops_reading != 0 && current_->plan.body_follows();
    if (!rest_.empty()) account_.complain(*current_, "a connection was used again before its response was whole");
    if (surplus_) account_.complain(*current_, "a connection with surplus bytes was used again");
    if (owner_ != nullptr && owner_ != current_->client) {
      account_.complain(*current_, current_->token + " travels on a connection that authenticated another client");
    }
    if (attempt.response.asks != 0 || current_->plan.expect == Expecting::strict) send_continue();
    switching_ = current_->plan.method == kUpgrade && attempt.response.status == 200;
    if (attempt.response.early != 0) switching_ ? switch_protocol() : start_response();
    return true;
  }
  void on_body(std::string_view bytes) {
    if (switched_) return tunnel_.feed(bytes);
    if (current_ == nullptr) return;
    if (!bears_mark(current_->token, received_, bytes))
      account_.complain(*current_, current_->token + ": an origin received foreign bytes");
    received_ += bytes.size();
  }
  void on_tail(std::string_view value) {
    tail_ = true;
    if (current_ != nullptr && value != current_->token) {
      account_.complain(*current_, current_->token + ": an origin received the trailers of " + std::string(value));
    }
  }
  void on_end() {
    if (current_ == nullptr) return;
    if (current_->has_tail() != tail_)
      account_.complain(*current_, current_->token + ": the request's trailers were lost");
    if (received_ != current_->body_size())
      account_.complain(*current_, current_->token + ": an origin received a body of another length");
    if (switching_) return enter_tunnel();
    start_response();
    current_ = nullptr;
  }
  bool switched() const { return switched_; }
  void on_garbage() { account_.complain("an origin received bytes that are no request"); }

 private:
  std::string mark() const {
    return "X-Of: " + current_->token + "/" + std::to_string(current_->attempts.size() - 1) + "\r\n";
  }
  void send_continue() { wire_.flying += "HTTP/1.1 100 Continue\r\n" + mark() + "\r\n"; }
  // 101 and the first bytes of the tunnel arrive in any split, or together.
  void switch_protocol() {
    wire_.flying += "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: marks\r\n" + mark() + "\r\n";
  }
  // The request is complete, so its client may use the new protocol.
  void enter_tunnel() {
    if (std::exchange(switched_, true)) return;
    AttemptRecord& attempt = current_->attempts.back();
    if (attempt.response.early == 0) switch_protocol();
    tunnel_.begin(*current_);
  }
  void start_response() {
    if (std::exchange(answered_, true)) return;
    AttemptRecord& attempt = current_->attempts.back();
    const ResponsePlan& response = attempt.response;
    std::string text;
    const std::string interim =
        "HTTP/1.1 " + std::to_string(interim_status(response)) + " Interim\r\n" + mark() + "\r\n";
    for (std::uint32_t n = 0; n < response.informational; ++n) text += interim;
    if (response.status != 0) append_final(text, response);
    account_.note_response(attempt);
    attempt.refused = response.status == 421;
    if (response.auth != 0 || credentials_) owner_ = current_->client;
    attempt.owned = owner_ != nullptr;
    const bool silent = response.end == ResponseEnd::silent;
    const bool cut = response.status == 0 || response.end == ResponseEnd::fin || response.end == ResponseEnd::reset;
    if ((cut || silent) && response.status != 0 && !text.empty()) text.pop_back();
    if (response.end == ResponseEnd::surplus && response.status != 0 && response.framing != 2) {
      text += kSurplus;
      wire_.glued = kSurplus.size();
      surplus_ = true;
    }
    resets_ = response.end == ResponseEnd::reset;
    if (response.end == ResponseEnd::whole && response.status != 0 && response.framing != 2) quits_in_ = response.quits;
    const bool ends = !silent && ((cut && !resets_) || response.framing == 2);
    const bool bare = current_->method() == "HEAD" || response.status == 204 || response.status == 304;
    if (response.lull != 0 && response.end == ResponseEnd::whole && response.size > 1 && response.status != 0 && !bare)
      return send_with_lull(text, response, ends);
    wire_.flying += text;
    wire_.ended = ends;
  }
  // The second half of the body comes when the proxy has received the first one and the time has passed.
  void send_with_lull(const std::string& text, const ResponsePlan& response, bool ends) {
    const std::size_t first = text.size() - std::min<std::size_t>(text.size(), response.size / 2);
    wire_.flying.append(text, 0, first);
    rest_ = text.substr(first);
    lull_ = std::chrono::milliseconds(response.lull);
    goes_on_at_ = Instant{};
    ends_ = ends;
  }
  bool go_on() {
    if (quits_in_ != 0 && wire_.flying.empty() && rest_.empty() && --quits_in_ == 0) return quit();
    if (rest_.empty() || !wire_.flying.empty()) return false;
    if (goes_on_at_ == Instant{}) goes_on_at_ = account_.now + lull_;
    if (account_.now < goes_on_at_) return false;
    wire_.flying += std::exchange(rest_, {});
    wire_.ended = ends_;
    return true;
  }
  // The origin closes a connection that no request uses, unannounced.
  bool quit() {
    if (current_ != nullptr || wire_.ended || switched_) return false;
    return wire_.ended = true;
  }
  void append_final(std::string& text, const ResponsePlan& response) const {
    text += "HTTP/1.1 " + std::to_string(response.status) + " Text\r\n" + mark();
    if (response.auth != 0) text += "WWW-Authenticate: Negotiate\r\n";
    if (response.events != 0) text += "Content-Type: text/event-stream\r\n";
    if (response.pause != 0) text += "Retry-After: " + std::to_string(response.pause) + "\r\n";
    if (response.fields != 0) text += "X-Pad: " + marked(current_->token, response.fields) + "\r\n";
    const bool bare = current_->method() == "HEAD" || response.status == 204 || response.status == 304;
    const std::string body = bare ? "" : marked(current_->token, response.size);
    if (response.status == 204 || response.status == 304) {
      text += "\r\n";
    } else if (response.framing == 2) {
      text += "Connection: close\r\n\r\n" + body;
    } else if (response.framing == 1) {
      text += "Transfer-Encoding: chunked\r\n\r\n";
      std::string tail = mark().replace(0, 4, "X-Tail");
      if (!bare) append_chunks(text, body, 3000, response.trailers != 0 ? tail : "");
    } else {
      text += "Content-Length: " + std::to_string(response.size) + "\r\n\r\n" + body;
    }
  }

  Account& account_;
  VirtualWire& wire_;
  MessageReader reader_;
  ScriptedTunnel tunnel_{account_, wire_};  // after 101
  RequestRecord* current_ = nullptr;
  std::uint32_t served_ = 0;
  std::uint64_t received_ = 0;
  const void* owner_ = nullptr;  // the client that this connection authenticated
  bool credentials_ = false;     // in the request, of a connection
  bool tail_ = false;            // trailers arrived
  std::string rest_;             // of a response, after a lull
  Duration lull_{};
  Instant goes_on_at_{};
  std::uint32_t quits_in_ = 0;    // turns until FIN; 0: never
  bool ends_ = false;             // FIN follows the rest
  bool stopped_reading_ = false;  // stops reading
  bool switching_ = false, switched_ = false, answered_ = false, resets_ = false, surplus_ = false;
};

}  // namespace carpool::test
