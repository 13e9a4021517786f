// What a command shows of the admin endpoint's answer: its own table where it has one, else whatever came.
#pragma once

#include <string>

#include "proxy/commands/cli/command.h"
#include "proxy/commands/cli/table.h"

namespace carpool::proxy::cli {

std::string text_of(const Command& command, const Json& answer);  // an object

}  // namespace carpool::proxy::cli
