// config_fuzz: any text as a configuration: it is read, or every error has a location.
#include <optional>

#include "proxy/config/env.h"
#include "proxy/config/read.h"
#include "tests/fuzz/strict_head.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace carpool;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const proxy::config::Env nothing = [](std::string_view) -> std::optional<std::string> { return std::nullopt; };
  const proxy::config::Reading reading = proxy::config::read_text(text, "c.toml", nothing);
  for (const proxy::config::ConfigError& error : reading.errors) {
    fuzz::must(!error.text.empty(), "an error has a text", text);
  }
  return 0;
}
