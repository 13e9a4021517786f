// The local reply when Max-Forwards is 0 and carpool is the final recipient: TRACE reflects the head, OPTIONS lists the
// methods.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/http/message.h"

namespace carpool::proxy {

// Returns Max-Forwards of a TRACE or OPTIONS request; other methods ignore the field.
std::optional<std::uint32_t> max_forwards(const http::RequestHead& request);

// `keep_alive`: the announced idle time in seconds; 0: none.
void write_max_forwards_reply(std::string& out, const http::RequestHead& request, std::string_view via_pseudonym,
                              bool close, std::uint32_t keep_alive);

}  // namespace carpool::proxy
