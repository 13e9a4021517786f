// read_token_file(): the bearer token in a file: its first line, without the CR of a file with CRLF line ends.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace carpool::proxy::config {

struct Admin;
struct Reading;

// Returns true if clients of the admin endpoint must send a token: it is neither on loopback nor a Unix socket. The
// token_file of another endpoint is not read. `admin.address` must be valid.
bool needs_token(const Admin& admin);

// Blocking. The Fault's detail is the path and the reason; an empty first line is a fault.
Result<std::string> read_token_file(const std::string& path);
// As read_token_file(); `opened` is the file, which is not necessarily a regular one.
Result<std::string> read_token(const std::string& path, const Result<Fd>& opened);

// Adds an error if [admin] token_file has no token, so that --check reports what the start would reject. Blocking.
void check_tokens(Reading& reading);

}  // namespace carpool::proxy::config
