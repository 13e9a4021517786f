// H2HeadReader: converts the fields of a header block to a head by RFC 9113 §8.2 and §8.3, plus the checks that a
// translation to HTTP/1.1 requires, so that no name, value or pseudo-header field can inject anything. Pure;
// independent of nghttp2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/fault.h"
#include "proxy/http/limits.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

// Processes one block at a time: begin(), field() for each, then end_*().
class H2HeadReader {
 public:
  explicit H2HeadReader(const Limits& limits) : limits_(limits) {}

  enum class Outcome : std::uint8_t {
    good,
    malformed,  // a stream error, PROTOCOL_ERROR (RFC 9113 §8.1.1); error() gives the reason
    too_large,  // over a limit: may be answered; too_large() returns which one
  };

  void begin_request(RequestHead& into);
  void begin_response(ResponseHead& into);
  void begin_trailers(Fields& into);
  void field(std::string_view name, std::string_view value, bool sensitive);
  // Must be called when the block is complete; `end`: the message is, too. Determines the framing of the body.
  Outcome end_request(bool end, bool extended_connect);
  Outcome end_response(bool end, bool head_request);
  Outcome end_trailers(bool end);

  const char* error() const { return error_; }
  FaultKind too_large() const { return too_large_; }
  // Returns true for a gRPC request, also if it is over a limit and the field that says so follows.
  bool is_grpc() const;
  // Returns the decoded size so far, counted like SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113 §6.5.2).
  std::uint64_t bytes() const { return bytes_; }

 private:
  enum class Kind : std::uint8_t { request, response, trailers };
  void begin(Kind kind, Fields& fields);
  void pseudo(std::string_view name, std::string_view value, bool sensitive);
  void request_pseudo(std::string_view name, std::string_view value, bool sensitive);
  void regular(std::string_view name, std::string_view value, bool sensitive);
  void add(std::string_view name, std::string_view value, FieldName id);
  void append_lines();
  void note_unread(std::string_view name, std::string_view value);
  void text_of(std::string& into, std::string_view value);
  void mark(std::uint8_t bit);
  void check_request(const RequestHead& head, bool extended_connect);
  void join_cookies();
  void refuse(FaultKind kind) {
    if (!refused_) too_large_ = kind;
    refused_ = true;
  }
  void reject(const char* why) {
    if (error_ == nullptr) error_ = why;
  }
  Outcome outcome() const {
    if (error_ != nullptr) return Outcome::malformed;
    return refused_ ? Outcome::too_large : Outcome::good;
  }

  Limits limits_;
  Kind kind_ = Kind::request;
  RequestHead* request_ = nullptr;
  ResponseHead* response_ = nullptr;
  Fields* fields_ = nullptr;
  const char* error_ = nullptr;
  FaultKind too_large_ = FaultKind::head_too_large;
  bool refused_ = false;
  bool regular_seen_ = false;
  bool unread_grpc_ = false;  // a field after the limit has the content type of gRPC
  std::uint8_t seen_ = 0;     // bits of the pseudo-header fields seen
  std::uint32_t count_ = 0;
  std::uint64_t bytes_ = 0;
  std::string cookie_;  // the cookie crumbs, joined (RFC 9113 §8.2.3)
  bool cookie_sensitive_ = false;
  std::size_t lines_size_ = 0;
  char lines_[512];  // of announced fields, not yet appended to fields_; the first lines_size_ bytes are initialized
};

}  // namespace carpool::proxy::http
