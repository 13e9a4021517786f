// A message's body, by the framing that its head announced. Chunk lines are read here and strictly: sizes of up to
// 2^60, CRLF and nothing else, extensions skipped (RFC 9112 §7.1.1) and bounded.
#pragma once

#include <cstdint>
#include <string_view>

#include "proxy/http/h1/field_reader.h"

namespace carpool::proxy::http {

class BodyReader {
 public:
  void start(Framing framing, std::uint64_t length);
  // Done behind the last byte of the message; with Framing::none at once. Trailers pass through `section` and
  // `scratch`.
  Step feed(std::string_view bytes, FieldSection& section, Fields& scratch, const Limits& limits, BodySink& sink);
  bool until_close() const { return state_ == State::until_close; }
  bool complete() const { return state_ == State::complete; }

 private:
  enum class State : std::uint8_t {
    complete,
    length,
    until_close,
    size_first,  // the first digit of a chunk's size
    size,
    extension_gap,  // white space that only an extension may follow
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailers,
  };
  std::size_t pass(std::string_view bytes, BodySink& sink);
  const char* byte(char c);
  const char* digit(char c);
  const char* in_extension(char c);
  const char* end_of_size();

  std::uint64_t left_ = 0;  // of the body, or of this chunk; while its size is read: the size so far
  std::uint32_t line_ = 0;  // bytes of this size line
  State state_ = State::complete;
};

}  // namespace carpool::proxy::http
