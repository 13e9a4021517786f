// config_helpers.h: helpers of the configuration tests.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "proxy/config/read.h"

namespace carpool::proxy::config {

inline Env no_env() {
  return [](std::string_view) -> std::optional<std::string> { return std::nullopt; };
}

inline Reading read_toml(std::string_view toml) {
  return read_text(toml, "c.toml", no_env());
}

inline std::string errors_of(const Reading& reading) {
  std::string out;
  for (const ConfigError& error : reading.errors) out += error.line_text() + '\n';
  return out;
}

// All errors of a text, one per line.
inline std::string errors(std::string_view toml) {
  return errors_of(read_toml(toml));
}

// The text is rejected with exactly one error, which starts with `start` and contains the given text.
inline void expect_error(std::string_view toml, std::string_view start, std::string_view says) {
  const Reading reading = read_toml(toml);
  const std::string all = errors_of(reading);
  EXPECT_EQ(reading.errors.size(), 1U) << toml << "\n--\n" << all;
  EXPECT_TRUE(all.starts_with("c.toml:" + std::string(start))) << toml << "\n--\n" << all << "wanted: " << start;
  EXPECT_NE(all.find(says), std::string::npos) << toml << "\n--\n" << all << "wanted: " << says;
}

inline Config good(std::string_view toml) {
  Reading reading = read_toml(toml);
  EXPECT_EQ(errors_of(reading), "") << toml;
  return reading.config;
}

}  // namespace carpool::proxy::config
