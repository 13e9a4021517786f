// JSON inside admin: included by its .cc files only, the one place that knows nlohmann's library.
#pragma once

#include <nlohmann/json.hpp>

#include "proxy/admin/answer.h"

namespace carpool::proxy::admin {

using Json = nlohmann::ordered_json;

Answer json_answer(std::uint16_t status, const Json& json);

}  // namespace carpool::proxy::admin
