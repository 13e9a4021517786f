// MessageReader: parses HTTP/1.1 messages from bytes in any split. It shares no code with carpool, so an error of
// carpool's parsers is not made twice.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "tests/sim/data_plane/marks.h"

namespace carpool::test {

struct ReadHead {
  std::string first;                          // the first line
  std::map<std::string, std::string> fields;  // by name in lower case
  std::uint32_t status() const {
    return first.size() < 12 ? 0 : static_cast<std::uint32_t>(std::atoi(first.c_str() + 9));
  }
  std::string field(std::string_view name) const {
    const auto found = fields.find(std::string(name));
    return found == fields.end() ? "" : found->second;
  }
};

class MessageReader {
 public:
  // User: on_head(const ReadHead&) returns false if no body follows regardless of the head; on_body(bytes), on_end(),
  // on_tail(value), on_garbage(), switched(): everything after this head is the body. Returns after each message that
  // ended; the rest waits for the next call.
  template <class User>
  void feed(std::string_view bytes, User& user) {
    held_.append(bytes);
    while (!wrong_ && step(user)) {
    }
  }
  // The connection ended in order. Returns true if that ends a message.
  template <class User>
  bool finish(User& user) {
    if (phase_ != Phase::until_close) return false;
    end(user);
    return true;
  }
  bool between() const { return phase_ == Phase::head && held_.empty(); }
  bool in_body() const { return phase_ != Phase::head; }

 private:
  enum class Phase : std::uint8_t { head, counted, chunk_head, chunk, chunk_end, trailers, until_close, tunnel };

  template <class User>
  bool step(User& user) {
    switch (phase_) {
      case Phase::head:
        return read_head(user);
      case Phase::counted:
      case Phase::chunk:
        return read_counted(user);
      case Phase::until_close:
      case Phase::tunnel:
        if (held_.empty()) return false;
        user.on_body(held_);
        held_.clear();
        return false;
      default:
        return read_line(user);
    }
  }
  template <class User>
  bool read_head(User& user) {
    const std::size_t at = held_.find("\r\n\r\n");
    if (at == std::string::npos) return false;
    const ReadHead head = parse(std::string_view(held_).substr(0, at));
    held_.erase(0, at + 4);
    if (head.first.find("HTTP/1.1") == std::string::npos) return fail(user);
    const bool request = head.first.compare(0, 5, "HTTP/") != 0;
    const bool body = user.on_head(head);
    if (user.switched()) {
      phase_ = Phase::tunnel;
      return true;
    }
    if (!request && head.status() < 200) return true;
    const std::string length = head.field("content-length");
    left_ = std::strtoull(length.c_str(), nullptr, 10);
    if (!body || (request && length.empty() && head.field("transfer-encoding").empty())) left_ = 0;
    if (body && head.field("transfer-encoding") == "chunked") {
      phase_ = Phase::chunk_head;
    } else if (body && !request && length.empty()) {
      phase_ = Phase::until_close;
    } else if (left_ == 0) {
      end(user);
    } else {
      phase_ = Phase::counted;
    }
    return true;
  }
  template <class User>
  bool read_counted(User& user) {
    if (held_.empty()) return false;
    const std::size_t size = std::min<std::uint64_t>(left_, held_.size());
    user.on_body(std::string_view(held_).substr(0, size));
    held_.erase(0, size);
    left_ -= size;
    if (left_ != 0) return true;
    if (phase_ == Phase::counted) {
      end(user);
    } else {
      phase_ = Phase::chunk_end;
    }
    return true;
  }
  template <class User>
  bool read_line(User& user) {
    const std::size_t at = held_.find("\r\n");
    if (at == std::string::npos) return false;
    const std::string line = held_.substr(0, at);
    held_.erase(0, at + 2);
    if (phase_ == Phase::chunk_end) {
      phase_ = Phase::chunk_head;
      return line.empty() || fail(user);
    }
    if (phase_ == Phase::trailers) {
      if (line.empty()) {
        end(user);
      } else if (const ReadHead tail = parse("\r\n" + line); !tail.field(kTailField).empty()) {
        user.on_tail(tail.field(kTailField));
      }
      return true;
    }
    if (line.empty() || std::isxdigit(static_cast<unsigned char>(line[0])) == 0) return fail(user);
    left_ = std::strtoull(line.c_str(), nullptr, 16);
    phase_ = left_ == 0 ? Phase::trailers : Phase::chunk;
    return true;
  }
  template <class User>
  void end(User& user) {
    phase_ = Phase::head;
    user.on_end();
    if (user.switched()) phase_ = Phase::tunnel;
  }
  template <class User>
  bool fail(User& user) {
    wrong_ = true;
    user.on_garbage();
    return false;
  }
  static ReadHead parse(std::string_view text) {
    ReadHead head;
    std::size_t at = text.find("\r\n");
    head.first = text.substr(0, at);
    while (at != std::string_view::npos) {
      const std::size_t next = text.find("\r\n", at + 2);
      const std::string_view line = text.substr(at + 2, next == std::string_view::npos ? next : next - at - 2);
      const std::size_t colon = line.find(':');
      std::string name(line.substr(0, colon));
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      const std::size_t value = colon == std::string_view::npos ? line.size() : line.find_first_not_of(' ', colon + 1);
      head.fields[name] = value == std::string_view::npos ? "" : std::string(line.substr(std::min(value, line.size())));
      at = next;
    }
    return head;
  }

  Phase phase_ = Phase::head;
  std::string held_;
  std::uint64_t left_ = 0;
  bool wrong_ = false;
};

}  // namespace carpool::test
