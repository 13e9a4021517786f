// The tables of pools: `carpool pools` in full, and a frame of `carpool top` that fits the terminal.
#pragma once

#include <cstddef>
#include <string>

#include "proxy/commands/cli/table.h"

namespace carpool::proxy::cli {

std::string pools_table(const Json& pools);
// `pools`: with "per_second". No line is wider than `columns`, unless ORIGIN and four figures do not fit: the last
// columns are left out, and then long origins are cut.
std::string top_table(const Json& pools, std::size_t columns);
bool fails(const Json& pool);  // most of its recent requests failed, or its last dial did

}  // namespace carpool::proxy::cli
