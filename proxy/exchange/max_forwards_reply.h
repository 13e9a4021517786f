// The local reply when Max-Forwards is 0 and carpool is the final recipient: TRACE reflects the head, OPTIONS lists the
// methods.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "proxy/http/forward.h"
#include "proxy/http/message.h"

namespace carpool::proxy {

// Returns Max-Forwards of a TRACE or OPTIONS request; other methods ignore the field.
std::optional<std::uint32_t> max_forwards(const http::RequestHead& request);

void write_max_forwards_reply(std::string& out, const http::RequestHead& request, const http::ReplyRules& rules);

}  // namespace carpool::proxy
