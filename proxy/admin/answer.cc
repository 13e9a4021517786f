#include "proxy/admin/answer.h"

#include "proxy/admin/json.h"
#include "proxy/http/reason.h"

namespace carpool::proxy::admin {

Answer text_answer(std::uint16_t status, std::string_view content_type, std::string body) {
  // A browser must neither keep what it saw nor guess another type for it.
  return {status,
          std::string(content_type),
          {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}},
          std::move(body),
          false};
}

Answer json_answer(std::uint16_t status, const Json& json) {
  return text_answer(status, "application/json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Answer problem_answer(std::uint16_t status, std::string_view error, const Json& more) {
  Json problem{{"type", "about:blank"},
               {"title", std::string(http::reason_phrase(status))},
               {"status", status},
               {"detail", std::string(error)},
               {"error", std::string(error)}};
  problem.update(more);
  Answer answer = json_answer(status, problem);
  answer.content_type = "application/problem+json";
  return answer;
}

Answer error_answer(std::uint16_t status, std::string_view error) {
  return problem_answer(status, error, Json::object());
}

}  // namespace carpool::proxy::admin
