#include "proxy/config/token_file.h"

#include <cstddef>
#include <utility>

#include "base/contents.h"
#include "base/open_to_read.h"
#include "proxy/config/read.h"
#include "proxy/config/text_format.h"
#include "proxy/http/set_field.h"

namespace carpool::proxy::config {

namespace {
constexpr std::size_t kMaxTokenFile = std::size_t{64} * 1024;
}  // namespace

bool needs_token(const Admin& admin) {
  return admin.enabled && !unix_address(admin.address) && !loopback_address(admin.address);
}

Result<std::string> read_token_file(const std::string& path) {
  return read_token(path, open_to_read(path));
}

Result<std::string> read_token(const std::string& path, const Result<Fd>& opened) {
  Result<std::string> text = contents(opened, kMaxTokenFile);
  if (!text) {
    Fault fault = text.take_fault();
    fault.detail.insert(0, path + ": ");
    return fault;
  }
  std::string token = text->substr(0, text->find('\n'));
  if (token.ends_with('\r')) token.pop_back();
  if (http::sendable_value(token)) return token;
  const char* const why = token.empty() ? ": the first line has no token"
                                        : ": the first line has a control character or white space around the token";
  return Fault{FaultKind::malformed_request, Side::self, path + why};
}

void check_tokens(Reading& reading) {
  for (const NamedFile& named : reading.tokens) {
    const Result<std::string> token = read_token_file(named.path);
    if (token) continue;
    reading.errors.push_back(named.place);
    reading.errors.back().text = token.fault().detail + ", expected a token";
  }
}

}  // namespace carpool::proxy::config
