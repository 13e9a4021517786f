#include "proxy/server/handover/handover_state.h"

#include <sstream>

#include "base/ascii.h"
#include "base/utf8.h"

namespace carpool::proxy {

namespace {
constexpr std::string_view kFirstLine = "carpool-handover 1";
constexpr std::string_view kLastLine = "end";
constexpr std::int64_t kMaxMilliseconds = std::chrono::milliseconds(std::chrono::hours(24) * 3660).count();

std::optional<std::string> from_hex(std::string_view text) {
  std::string bytes;
  if (text.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const std::size_t high = kLowerHex.find(text[i]), low = kLowerHex.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes.push_back(static_cast<char>(high << 4 | low));
  }
  return bytes;
}

std::int64_t in_milliseconds(std::optional<Duration> duration) {
  return duration ? std::chrono::duration_cast<std::chrono::milliseconds>(*duration).count() : 0;
}

bool read_origin(std::istringstream& rest, HandoverState& state) {
  HandoverState::Origin origin;
  std::int64_t learned = 0;
  if (!(rest >> origin.label >> origin.open >> learned >> origin.tls_fingerprint) || learned > kMaxMilliseconds)
    return false;
  if (learned > 0) origin.learned_idle = std::chrono::milliseconds(learned);
  state.origins.push_back(std::move(origin));
  return true;
}

bool read_session(std::istringstream& rest, HandoverState& state) {
  std::string hex;
  if (!(rest >> hex) || state.origins.empty()) return false;
  std::optional<std::string> session = from_hex(hex);
  if (session) state.origins.back().sessions.push_back(std::move(*session));
  return session.has_value();
}

// Parses the size of the last origin.
bool read_size(std::istringstream& rest, HandoverState& state) {
  std::uint32_t size = 0;
  if (!(rest >> size) || state.origins.empty()) return false;
  state.origins.back().size = size;
  return true;
}

bool read_paused(std::istringstream& rest, HandoverState& state) {
  HandoverState::Paused paused;
  std::int64_t age = 0, left = 0;
  if (!(rest >> paused.label >> paused.drains >> age >> left) || age < 0 || age > kMaxMilliseconds ||
      left > kMaxMilliseconds)
    return false;
  paused.age = std::chrono::milliseconds(age);
  if (left >= 0) paused.left = std::chrono::milliseconds(left);
  state.paused.push_back(std::move(paused));
  return true;
}

bool read_line(const std::string& line, HandoverState& state) {
  std::istringstream rest(line);
  std::string what;
  rest >> what;
  if (what == "socket") {
    HandoverState::Socket socket;
    if (!(rest >> socket.role >> std::ws) || !std::getline(rest, socket.address))
      return false;  // a path may contain blanks
    state.sockets.push_back(std::move(socket));
    return true;
  }
  if (what == "origin") return read_origin(rest, state);
  if (what == "size") return read_size(rest, state);
  if (what == "session") return read_session(rest, state);
  if (what == "paused") return read_paused(rest, state);
  return true;  // a line of a later version is skipped
}
}  // namespace

std::string encode(const HandoverState& state) {
  std::string text(kFirstLine);
  text.push_back('\n');
  for (const HandoverState::Socket& socket : state.sockets) {
    text.append("socket ").append(socket.role).append(" ").append(socket.address).append("\n");
  }
  for (const HandoverState::Origin& origin : state.origins) {
    text.append("origin ").append(origin.label).append(" ").append(std::to_string(origin.open));
    text.append(" ").append(std::to_string(in_milliseconds(origin.learned_idle)));
    text.append(" ").append(std::to_string(origin.tls_fingerprint)).append("\n");
    if (origin.size != 0) text.append("size ").append(std::to_string(origin.size)).append("\n");
    for (const std::string& session : origin.sessions) {
      text.append("session ");
      for (const char byte : session) append_hex(text, byte);
      text.push_back('\n');
    }
  }
  for (const HandoverState::Paused& paused : state.paused) {
    text.append("paused ").append(paused.label).append(paused.drains ? " 1 " : " 0 ");
    text.append(std::to_string(in_milliseconds(paused.age))).append(" ");
    text.append(paused.left ? std::to_string(in_milliseconds(paused.left)) : "-1").append("\n");
  }
  return text.append(kLastLine).append("\n");
}

Result<HandoverState> decode_handover_state(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string line;
  if (!std::getline(lines, line) || line != kFirstLine) {
    return Fault{FaultKind::internal, Side::self, "hand-over: the state has another version"};
  }
  HandoverState state;
  while (std::getline(lines, line)) {
    if (line == kLastLine) return state;
    if (!read_line(line, state)) {
      return Fault{FaultKind::internal, Side::self,
                   "hand-over: a line of the state is malformed: " + std::string(clipped(line, 60))};
    }
  }
  return Fault{FaultKind::internal, Side::self, "hand-over: the state is incomplete"};
}

}  // namespace carpool::proxy
