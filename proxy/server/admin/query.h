// QueryReader: the numbers and durations of a target's query, with the text of the error if one is malformed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace carpool::proxy::admin {

class QueryReader {
 public:
  explicit QueryReader(std::string_view target) : target_(target) {}  // `target` must outlive the reader

  // Return nullopt if the query does not have the parameter, or its value is malformed.
  std::optional<std::uint32_t> number(const char* name, std::uint32_t least, std::uint32_t most);
  std::optional<Duration> duration(const char* name);
  std::optional<Duration> duration_above_zero(const char* name);

  // Returns why the last malformed value is one; nullopt if there was none.
  const std::optional<std::string>& error() const { return error_; }

 private:
  std::optional<Duration> duration(const char* name, Duration least, const char* kind);

  std::string_view target_;
  std::optional<std::string> error_;
};

}  // namespace carpool::proxy::admin
