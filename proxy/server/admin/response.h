// Response: the response to an admin request as a value, which the server writes. For HEAD the length of the body is
// sent, but not the body.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carpool::proxy::admin {

struct Response;

// PendingResponse: a response that is not known yet. The admin thread polls it.
class PendingResponse {
 public:
  PendingResponse() = default;
  PendingResponse(const PendingResponse&) = delete;
  PendingResponse& operator=(const PendingResponse&) = delete;
  virtual ~PendingResponse() = default;
  virtual std::optional<Response> poll_pending() = 0;
};

// Pieces: a long body, generated piece by piece, so that it is never in memory as a whole.
class Pieces {
 public:
  Pieces() = default;
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  virtual ~Pieces() = default;
  // Appends the next piece, some kilobytes. Returns false if there are no more. May block. Any thread, one at a time.
  virtual bool next(std::string& out) = 0;
};

struct Response {
  std::uint16_t status = 200;
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers;  // in addition to Content-Type, Content-Length and Date
  std::string body;
  std::unique_ptr<Pieces> pieces{};          // instead of `body`
  bool stream = false;                       // server-sent events follow until the client disconnects
  std::unique_ptr<PendingResponse> later{};  // instead of all other members
};

Response text_response(std::uint16_t status, std::string_view content_type, std::string body);
// Returns application/problem+json (RFC 9457): title, status and detail; "error" repeats the detail.
Response error_response(std::uint16_t status, std::string_view error);
// Returns 503 with Retry-After.
Response busy_response(std::string_view why, const char* seconds);

}  // namespace carpool::proxy::admin
