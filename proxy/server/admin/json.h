// JSON for admin: included only by its .cc files, which alone use nlohmann's library here.
#pragma once

#include <chrono>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json_bounds.h"
#include "proxy/server/admin/response.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json);
Response json_response(std::uint16_t status, const Json& json);
// Appends `json` as an element of a list that is a member of an object.
void append_member(std::string& out, const Json& json);
// Returns an error with the members `more` besides those of error_response().
Response problem_response(std::uint16_t status, std::string_view error, const Json& more);
Json json_of(const PoolInfo& pool);  // as in /pools

// RenamedMember: a member of a response whose name changed. For one release it is sent under both names
// (docs/upgrade.md).
struct RenamedMember {
  const char* now;
  const char* before;
};
void add_old_names(Json& response, std::initializer_list<RenamedMember> renamed);

// Returns null for missing and empty values.
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
inline Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
inline double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace carpool::proxy::admin
