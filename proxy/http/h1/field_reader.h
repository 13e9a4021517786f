// FieldSection: parses one field section, a head's or the trailers', with llhttp. No other file includes llhttp. Start
// lines and chunks are parsed elsewhere, because llhttp supports only a fixed set of methods and its versions differ in
// the chunk extensions that they reject (8.1.0 rejects valid ones).
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
class FieldLayouts;

class FieldSection {
 public:
  void start();
  // Adds fields to `into`. If `trailers` is set, it receives them one by one and `into` is left as before (but its
  // bytes may move). Is done after the empty line.
  Step feed(std::string_view bytes, Fields& into, const Limits& limits, BodySink* trailers);
  // The same for a head: its fields become the first ones of `into`. A section whose layout is known is not parsed.
  Step feed_head(std::string_view bytes, Fields& into, const Limits& limits, FieldLayouts* layouts);

 private:
  const char* check(std::string_view bytes, const Limits& limits, bool& too_large);
  static constexpr std::size_t kParserBytes = 112;
  // llhttp_t; initialised between start() and done
  alignas(void*) std::array<std::byte, kParserBytes> parser_;
  LineEnds lines_;
  std::uint32_t bytes_ = 0;
  bool open_ = false;  // the current field began in an earlier call: its pieces are in the arena
};

}  // namespace carpool::proxy::http
