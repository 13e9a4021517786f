#include "proxy/server/admin/query.h"

#include "base/ascii.h"
#include "proxy/config/text.h"
#include "proxy/server/admin/path.h"

namespace carpool::proxy::admin {

std::optional<std::uint32_t> QueryReader::number(const char* name, std::uint32_t least, std::uint32_t most) {
  const auto text = query_value(target_, name);
  if (!text) return std::nullopt;
  const auto value = number_in<std::uint32_t>(*text);
  if (value && *value >= least && *value <= most) return value;
  error_ = std::string(name) + ": `" + *text + "` is not a number from " + std::to_string(least) + " to " +
           std::to_string(most);
  return std::nullopt;
}

std::optional<Duration> QueryReader::duration(const char* name) {
  return duration(name, Duration::zero(), "a duration");
}

std::optional<Duration> QueryReader::duration_above_zero(const char* name) {
  return duration(name, Duration(1), "a duration above zero");
}

std::optional<Duration> QueryReader::duration(const char* name, Duration least, const char* kind) {
  const auto text = query_value(target_, name);
  if (!text) return std::nullopt;
  const auto value = config::parse_duration(*text);
  if (value && *value >= least) return value;
  error_ = std::string(name) + ": `" + *text + "` is not " + kind + R"(, such as "250ms" or "30s")";
  return std::nullopt;
}

}  // namespace carpool::proxy::admin
