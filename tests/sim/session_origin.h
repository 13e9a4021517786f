// SessionOrigin: an origin at the far end of a wire: the server's half of the same session code, driven by a history.
// It never processes a stream that it refused or excluded by GOAWAY; any other behaviour is possible.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/h2/session.h"
#include "tests/sim/session_wire.h"

namespace carpool::test {

// One response to a request.
struct Response {
  std::uint64_t bytes = 0;
  bool whole = false;
};

// The request and its responses with one number, over all connections.
struct PlannedResponse {
  std::uint32_t may_repeat = 0;  // how often the client may be processed again, which some methods allow
  std::vector<Response>
      responses;             // of the origins that processed it; one may not know that its client has disconnected
  std::uint64_t upload = 0;  // bytes of the request body
  std::uint64_t said = 0;    // and bytes sent so far
  bool asked_whole = false;  // an origin received the end of the request
  std::size_t held = 0;      // of those, bytes believed in flight
  bool takes = false;        // the client can take more of the response
  std::uint32_t ends = 0;
};

struct PlannedResponses {
  std::map<std::uint64_t, PlannedResponse> all;
  std::string wrong;
  void complain(std::string what) {
    if (wrong.empty()) wrong = std::move(what);
  }
};

// Every byte encodes its request's number and its offset.
inline char body_byte(std::uint64_t number, std::uint64_t at, bool response) {
  return static_cast<char>(number * 131 + at * 7 + (at >> 8) * 3 + (response ? 1 : 0));
}
inline std::string body_piece(std::uint64_t number, std::uint64_t from, std::size_t size, bool response) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = body_byte(number, from + i, response);
  return bytes;
}
inline bool is_body(std::uint64_t number, std::uint64_t from, std::string_view bytes, bool response) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != body_byte(number, from + i, response)) return false;
  }
  return true;
}

class SimOrigin final : private proxy::http::H2Sink {
 public:
  SimOrigin(Random& random, PlannedResponses& planned, Wire& wire)
      : random_(random),
        errands_(planned),
        wire_(wire),
        options_(options(random)),
        session_(proxy::http::H2Role::server, options_, *this) {}

  // Delivers up to `most` bytes to the origin.
  bool take(std::size_t most, Instant now) {
    const std::string bytes = wire_.deliver_up(most);
    if (bytes.empty()) return false;
    std::string passed;
    const std::size_t preface = std::min<std::size_t>(bytes.size(), 24 - std::min<std::size_t>(24, seen_));
    passed.append(bytes, 0, preface);
    seen_ += bytes.size();
    frames_.pass(std::string_view(bytes).substr(preface), [&](const WireFrame& frame) {
      if (!own_ack(frame)) passed.append(frame.whole);
    });
    if (!session_.receive(passed, now)) errands_.complain("an origin could not read what we sent");
    say(now);
    return true;
  }
  void say(Instant now) {
    std::string out;
    session_.pull(out, SIZE_MAX, now);
    if (!wire_.ended && !wire_.broken) wire_.sent_down(out);
    if (session_.over() && !gave_up_) wire_.ended = true;
  }
  // Performs one action that an origin may take. `kind`: only harmless actions, so that everything completes.
  void act(Instant now, bool kind) {
    now_ = now;
    if (wire_.ended || wire_.broken) return;
    if (!kind && chance(random_, 4)) misbehave();
    if (!served_.empty()) {
      auto at = served_.begin();
      std::advance(at, pick(random_, static_cast<std::uint32_t>(served_.size())));
      kind ? serve_well(at->second) : serve(at->second);
    }
    say(now);
  }
  // Restores windows and stream limits.
  void make_up(Instant now) {
    now_ = now;
    if (wire_.ended || wire_.broken) return;
    if (odd_settings_) {
      settings(4, options_.stream_window);
      settings(3, options_.max_streams);
    }
    odd_settings_ = false;
    for (auto& [id, one] : served_) give_room(one, SIZE_MAX);
    say(now);
  }
  bool busy() const { return !served_.empty(); }
  // Call with nothing in flight. Returns true if data has not moved although its window or its reader has room.
  bool stalled() {
    if (wire_.ended || wire_.broken || wire_.left) return false;
    for (auto& [id, one] : served_) {
      if (one.over || one.stream == nullptr) continue;
      const auto stream = static_cast<std::uint32_t>(id);
      const PlannedResponse& planned_one = errands_.all[one.number];
      if (wire_.up.allowance.open(stream) && one.uploaded < planned_one.said) return true;
      if (one.uploaded == planned_one.said && planned_one.held != 0) return true;
      if (one.stream->backlog() != 0 && (planned_one.takes || wire_.down.allowance.open(stream))) return true;
    }
    return false;
  }
  void end() { wire_.ended = true; }
  // Refuses every stream that it does not process.
  void refuse(Instant now) {
    for (auto& [id, one] : served_) {
      if (one.stream != nullptr && !one.working) reset(one, proxy::http::H2Error::refused_stream);
    }
    say(now);
  }
  void go_away(Instant now) {
    give_up();
    say(now);
  }
  // Responds to every request, whatever has arrived of it, and opens no window any more.
  void respond_early(Instant now) {
    for (auto& [id, one] : served_) {
      if (one.stream == nullptr || one.working) continue;
      work_on(one);
      one.head = response_of(one).whole = true;
      session_.respond(*one.stream, fields("413", one), true);
    }
    say(now);
  }
  std::size_t open_streams() const { return session_.streams(); }
  void allow_streams(std::uint32_t most, Instant now) {
    now_ = now;
    settings(3, most);
  }
  void cut() {
    wire_.broken = true;
    wire_.here.clear();
  }

 private:
  struct Served final : proxy::http::H2StreamUser {
    SimOrigin* origin = nullptr;
    proxy::http::H2Stream* stream = nullptr;
    std::uint64_t number = 0;
    std::uint64_t uploaded = 0, answered = 0;
    std::size_t unread = 0, attempt = 0;
    bool working = false, head = false, asked_whole = false, over = false;
    void on_head(proxy::http::ResponseHead&) override {}
    void on_body(std::string_view bytes) override {
      if (!is_body(number, uploaded, bytes, false)) origin->errands_.complain("an upload came mixed");
      uploaded += bytes.size();
      unread += bytes.size();
    }
    void on_trailers(const proxy::http::Fields&) override {}
    void on_end() override {
      asked_whole = true;
      origin->errands_.all[number].asked_whole = true;
      if (uploaded != origin->errands_.all[number].upload) origin->errands_.complain("an upload came short");
    }
    void on_sent(std::size_t) override {}
    void on_closed(proxy::http::H2Error) override {
      stream = nullptr;
      over = true;
    }
  };

  static proxy::http::H2Options options(Random& random) {
    proxy::http::H2Options all;
    all.max_streams = 1 + pick(random, 8);
    all.stream_window = chance(random, 50) ? 65535 : 500 + pick(random, 40000);
    return all;
  }

  proxy::http::H2StreamUser* on_request(proxy::http::H2Stream& stream, proxy::http::RequestHead& head) override {
    const std::uint64_t number = std::stoull(std::string(head.fields.get("x-number")));
    if (head.target != "/" + std::to_string(number)) errands_.complain("a request's head came mixed");
    if (gave_up_ && stream.id() > last_) return nullptr;  // promised: never processed
    forget_closed();
    Served& one = served_[stream.id()];
    one.origin = this;
    one.stream = &stream;
    one.number = number;
    newest_ = stream.id();
    return &one;
  }
  void on_refused_head(proxy::http::H2Stream&, FaultKind) override { errands_.complain("a head was refused"); }
  void on_settings(const proxy::http::H2PeerSettings&) override {}
  void on_goaway(proxy::http::StreamId, proxy::http::H2Error) override {}
  void on_ping_ack(std::uint64_t) override {}

  void forget_closed() {
    for (auto at = served_.begin(); at != served_.end();) at = at->second.over ? served_.erase(at) : std::next(at);
  }

  // From here on the request counts as processed.
  void work_on(Served& one) {
    one.working = true;
    PlannedResponse& planned_one = errands_.all[one.number];
    one.attempt = planned_one.responses.size();
    planned_one.responses.emplace_back();
    if (planned_one.responses.size() > 1 + planned_one.may_repeat)
      errands_.complain("replayed what an origin had worked on");
    worked_ = std::max(worked_, one.stream->id());
  }
  void reset(Served& one, proxy::http::H2Error error) {
    session_.reset(*std::exchange(one.stream, nullptr), error);
    one.over = true;
  }

  void serve(Served& one) {
    using proxy::http::H2Error;
    if (one.stream == nullptr || chance(random_, 10)) return;
    if (chance(random_, 40)) give_room(one, pick(random_, 30000));
    if (!one.working) {
      if (chance(random_, 6)) return reset(one, H2Error::refused_stream);
      if (chance(random_, 3)) return reset(one, H2Error::internal_error);
      return work_on(one);
    }
    if (chance(random_, 2)) return reset(one, chance(random_, 50) ? H2Error::cancel : H2Error::enhance_your_calm);
    if (!one.head) {
      if (chance(random_, 15)) return inform(one);
      return respond(one);
    }
    chance(random_, 20) ? finish(one) : add(one);
  }
  void serve_well(Served& one) {
    if (one.stream == nullptr) return forget_closed();
    give_room(one, SIZE_MAX);
    if (!one.working) work_on(one);
    if (!one.head) return respond(one);
    if (one.asked_whole || chance(random_, 10)) finish(one);
  }

  void give_room(Served& one, std::size_t most) {
    if (one.stream == nullptr) return;
    const std::size_t bytes = std::min(most, one.unread);
    one.unread -= bytes;
    session_.consume(*one.stream, bytes);
  }
  proxy::http::H2Fields& fields(const char* status, const Served& one) {
    fields_.clear();
    fields_.add(":status", status);
    fields_.add("x-number", std::to_string(one.number));
    fields_.add("x-attempt", std::to_string(one.attempt));
    return fields_;
  }
  Response& response_of(const Served& one) { return errands_.all[one.number].responses[one.attempt]; }
  void inform(Served& one) { session_.inform(*one.stream, fields("103", one)); }
  void respond(Served& one) {
    one.head = true;
    const bool end = chance(random_, 15);
    if (end) response_of(one).whole = true;
    session_.respond(*one.stream, fields("200", one), end);
    if (end) leave(one);
  }
  void add(Served& one) {
    if (one.stream->backlog() > 100000) return;
    const std::size_t size = 1 + pick(random_, chance(random_, 20) ? 60000 : 3000);
    session_.body(*one.stream, body_piece(one.number, one.answered, size, true));
    one.answered += size;
    response_of(one).bytes = one.answered;
  }
  void finish(Served& one) {
    response_of(one).whole = true;
    if (chance(random_, 30)) {
      proxy::http::Fields trailers;
      trailers.add("x-number", std::to_string(one.number));
      session_.end(*one.stream, trailers);
    } else {
      session_.end(*one.stream);
    }
    leave(one);
  }
  // The response is complete; the rest of the request body is not wanted.
  void leave(Served& one) {
    session_.leave(*std::exchange(one.stream, nullptr));
    one.over = true;
  }

  // ---- actions on all streams ----

  void misbehave() {
    switch (pick(random_, 8)) {
      case 0:
        return give_up();
      case 1:
        return session_.announce_shutdown();
      case 2:
        if (chance(random_, 30)) end();
        return;
      case 3:
        if (chance(random_, 30)) cut();
        return;
      case 4:
      case 5:
        return settings(4, pick(random_, chance(random_, 50) ? options_.stream_window + 1 : 2));
      case 6:
        return settings(3, pick(random_, options_.max_streams + 1));
      default:
        return session_.ping(random_());
    }
  }
  // Sends a GOAWAY that excludes every unprocessed stream; a repeated one may name more, which has no effect.
  void give_up() {
    const proxy::http::StreamId last = worked_ + (gave_up_ ? static_cast<int>(2 * pick(random_, 3)) : 0);
    if (!gave_up_) {
      last_ = last;
      for (auto& [id, one] : served_) one.over = one.over || id > last_;
      for (auto& [id, one] : served_) {
        if (id <= last_ || one.stream == nullptr) continue;
        one.stream->set_user(nullptr);
        one.stream = nullptr;
      }
    }
    gave_up_ = true;
    raw(7, 0, number(static_cast<std::uint32_t>(last)) + number(0));
  }
  void settings(unsigned id, std::uint32_t value) {
    odd_settings_ = true;
    ++acks_to_drop_;
    raw(4, 0, std::string{static_cast<char>(id >> 8), static_cast<char>(id)} + number(value));
  }
  // Returns true for acknowledgements of settings that the session did not send and must not see. Its own comes first.
  bool own_ack(const WireFrame& frame) {
    if (frame.type != 4 || (frame.flags & 1) == 0) return false;
    if (++acks_seen_ == 1) return false;
    if (acks_to_drop_ == 0) errands_.complain("SETTINGS were acknowledged that nobody sent");
    --acks_to_drop_;
    return true;
  }
  void raw(unsigned type, unsigned flags, std::string_view payload) {
    std::string out;
    session_.pull(out, SIZE_MAX, now_);
    out += number(static_cast<std::uint32_t>(payload.size()) << 8 | type);
    out.push_back(static_cast<char>(flags));
    out += number(0);
    wire_.sent_down(out.append(payload));
  }
  static std::string number(std::uint32_t value) {
    std::string out;
    for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<char>(value >> shift & 0xff));
    return out;
  }

  Random& random_;
  PlannedResponses& errands_;
  Wire& wire_;
  const proxy::http::H2Options options_;
  proxy::http::H2Session session_;
  FrameReader frames_{0};
  std::size_t seen_ = 0;
  std::map<proxy::http::StreamId, Served> served_;
  proxy::http::H2Fields fields_;
  proxy::http::StreamId newest_ = 0, worked_ = 0, last_ = 0;
  bool gave_up_ = false, odd_settings_ = false;
  std::uint32_t acks_seen_ = 0, acks_to_drop_ = 0;
  Instant now_{};
};

}  // namespace carpool::test
