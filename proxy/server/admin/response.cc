#include "proxy/server/admin/response.h"

#include <algorithm>

#include "proxy/http/reason_phrase.h"
#include "proxy/server/admin/json.h"

namespace carpool::proxy::admin {

Response text_response(std::uint16_t status, std::string_view content_type, std::string body) {
  // The browser must neither cache the response nor guess another content type.
  return {status,
          std::string(content_type),
          {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}},
          std::move(body)};
}

void add_old_names(Json& response, std::initializer_list<RenamedMember> renamed) {
  for (const RenamedMember& member : renamed) response[member.before] = response.at(member.now);
}

std::string text_of(const Json& json) {
  return json_text(json, 2);
}

// Line breaks occur only between values: those in strings are escaped.
void append_member(std::string& out, const Json& json) {
  constexpr std::string_view kDepth = "    ";
  const std::string text = text_of(json);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    out.append(kDepth).append(text, begin, end - begin);
    begin = end;
  }
}

Response json_response(std::uint16_t status, const Json& json) {
  return text_response(status, "application/json", text_of(json) + "\n");
}

Response problem_response(std::uint16_t status, std::string_view error, const Json& more) {
  Json problem{{"type", "about:blank"},
               {"title", std::string(http::reason_phrase(status))},
               {"status", status},
               {"detail", std::string(error)},
               {"error", std::string(error)}};
  problem.update(more);
  Response response = json_response(status, problem);
  response.content_type = "application/problem+json";
  return response;
}

Response error_response(std::uint16_t status, std::string_view error) {
  return problem_response(status, error, Json::object());
}

Response busy_response(std::string_view why, const char* seconds) {
  Response response = error_response(503, why);
  response.headers.emplace_back("Retry-After", seconds);
  return response;
}

}  // namespace carpool::proxy::admin
