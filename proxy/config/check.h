// Checks across settings: contradictions, and unsafe combinations.
#pragma once

#include <array>
#include <string_view>

#include "proxy/config/read.h"
#include "proxy/config/schema.h"

namespace carpool::proxy::config {

// A tcp origin is the target of CONNECT (RFC 9110 §9.3.6): each connection serves one tunnel, whose content carpool
// does not interpret. These keys of [[origin]] are an error there.
inline constexpr std::array<std::string_view, 12> kRefusedForTcp{"alias",
                                                                 "allow",
                                                                 "pool.health_check.probe",
                                                                 "pool.max_streams",
                                                                 "pool.max_usage",
                                                                 "upstream.protocols",
                                                                 "upstream.lenient",
                                                                 "upstream.tls.ca_file",
                                                                 "upstream.tls.cert_file",
                                                                 "upstream.tls.min_version",
                                                                 "upstream.tls.verify",
                                                                 "upstream.tls.server_name"};
inline constexpr std::string_view kTcpSize = "pool.tcp_size";  // an error in any other [[origin]]
// Returns true for a key that is an error in this [[origin]], so that its value is always that of all origins.
bool only_inherited(const OriginSettings& origin, const Section& section, const Setting& setting);

// Append to reading.errors and reading.warnings, and note the files that the configuration names.
void check_servers(Reading& reading, const Places& places, const std::string& file);
void check_origins(Reading& reading, const Places& places, const std::string& file);

// All checks.
void check(Reading& reading, const Places& places, const std::string& file);

}  // namespace carpool::proxy::config
