// A field section, that of a head or of trailers: the door to llhttp. Start lines and chunks are not read by it: it
// knows only a fixed set of methods, and its versions differ in which chunk extensions they refuse (8.1.0 refuses good
// ones).
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "proxy/http/h1/step.h"
#include "proxy/http/limits.h"
#include "proxy/http/line_ends.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

class BodySink;

class FieldSection {
 public:
  void start();
  // Adds fields to `into`; with `trailers` they go there one by one, and `into` is as before (but its bytes may move).
  // Done behind the empty line.
  Step feed(std::string_view bytes, Fields& into, const Limits& limits, BodySink* trailers);

 private:
  const char* check(std::string_view bytes, const Limits& limits, bool& too_large);
  static constexpr std::size_t kParserBytes = 112;
  alignas(std::max_align_t) std::array<std::byte, kParserBytes> parser_;  // llhttp_t; a value between start() and done
  LineEnds lines_;
  std::uint32_t bytes_ = 0;
};

}  // namespace carpool::proxy::http
