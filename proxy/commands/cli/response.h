// Renders the admin endpoint's response to a command, with a table for that command if there is one, otherwise
// generically.
#pragma once

#include <string>

#include "proxy/commands/cli/command.h"
#include "proxy/commands/cli/table.h"

namespace carpool::proxy::cli {

std::string text_of(const Command& command, const Json& response);  // `response` is an object

}  // namespace carpool::proxy::cli
