// JSON inside admin: included by its .cc files only, the one place that knows nlohmann's library.
#pragma once

#include <nlohmann/json.hpp>

#include "proxy/admin/answer.h"
#include "proxy/admin/view.h"

namespace carpool::proxy::admin {

using Json = nlohmann::ordered_json;

Answer json_answer(std::uint16_t status, const Json& json);
Json json_of(const PoolFacts& pool);  // as /pools tells it

}  // namespace carpool::proxy::admin
