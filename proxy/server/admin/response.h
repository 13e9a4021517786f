// Answer: what an admin request is told, as a value; the server writes it. For HEAD the body counts but is not sent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carpool::proxy::admin {

struct Answer;

// An answer that is not known yet: asked for it now and then, on the admin thread.
class PendingAnswer {
 public:
  PendingAnswer() = default;
  PendingAnswer(const PendingAnswer&) = delete;
  PendingAnswer& operator=(const PendingAnswer&) = delete;
  virtual ~PendingAnswer() = default;
  virtual std::optional<Answer> look() = 0;
};

// A long body: made piece by piece, so that no more of it exists at once than its reader takes.
class Pieces {
 public:
  Pieces() = default;
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  virtual ~Pieces() = default;
  // Appends the next one, some kilobytes. False: there are no more. It may block; any thread, one at a time.
  virtual bool next(std::string& out) = 0;
};

struct Answer {
  std::uint16_t status = 200;
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers;  // besides Content-Type, Content-Length and Date
  std::string body;
  std::unique_ptr<Pieces> pieces{};        // instead of `body`
  bool stream = false;                     // server-sent events follow until the client leaves
  std::unique_ptr<PendingAnswer> later{};  // instead of all the rest
};

Answer text_answer(std::uint16_t status, std::string_view content_type, std::string body);
// application/problem+json (RFC 9457): title, status and detail, and the detail as "error" again.
Answer error_answer(std::uint16_t status, std::string_view error);

}  // namespace carpool::proxy::admin
