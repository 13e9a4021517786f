// RequestRule: one rule about requests, "GET /v1/*": a method, and a path that is exact or ends in `*`. A request that
// no rule matches is refused by its user, so that an ambiguous path matches no rule.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace carpool::proxy::http {

class RequestRule final {
 public:
  // "METHOD /path" or "METHOD /prefix*"; the method `*` matches every method. The Fault's detail is the reason.
  static Result<RequestRule> parse(std::string_view text);
  // `path`: of Target, with its query, which rules ignore. The bytes are compared as they are: "/%61" is not "/a".
  bool matches(std::string_view method, std::string_view path) const;

 private:
  RequestRule(std::string_view method, std::string_view path, bool prefix)
      : method_(method), path_(path), prefix_(prefix) {}
  std::string method_, path_;
  bool prefix_;
};

// Returns true if every origin interprets the path, without its query, in the same way: each `%` begins an encoded
// byte, the decoded bytes are UTF-8, there is no backslash, no encoded slash, percent sign or control character, and no
// character that becomes one of these or a dot when it is normalized. Without its parameters (from `;`, or an
// encoded `?` or `#`) and its characters outside ASCII, no segment consists of dots and spaces with at least one dot.
// Empty segments are allowed: an origin that drops them stays behind the same prefix.
bool unambiguous_path(std::string_view path);

}  // namespace carpool::proxy::http
