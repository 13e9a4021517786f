// BodyReader: reads a message body by the framing that its head announced. Chunk lines are parsed here, and strictly:
// sizes below 2^60, CRLF only, extensions skipped and bounded in length, also in total (RFC 9112 §7.1.1).
#pragma once

#include <cstdint>
#include <string_view>

#include "proxy/http/h1/field_reader.h"

namespace carpool::proxy::http {

class BodyReader {
 public:
  void start(Framing framing, std::uint64_t length);
  // Returns done after the last byte of the message, with Framing::none immediately. Trailers are parsed by `section`
  // into `scratch`.
  Step feed(std::string_view bytes, FieldSection& section, Fields& scratch, const Limits& limits, BodySink& sink);
  // Returns the bytes left of a body whose head announced its length; 0 with another framing.
  std::uint64_t length_left() const { return state_ == State::length ? left_ : 0; }
  // Counts bytes of such a body that do not pass feed(): at most length_left().
  void skip(std::uint64_t bytes);
  bool until_close() const { return state_ == State::until_close; }
  bool complete() const { return state_ == State::complete; }

 private:
  enum class State : std::uint8_t {
    complete,
    length,
    until_close,
    size_first,  // the first digit of a chunk size
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

  std::uint64_t left_ = 0;    // bytes left of the body or of this chunk; while a chunk size is parsed, its value so far
  std::uint32_t excess_ = 0;  // bytes of size lines that no data accounts for
  std::uint16_t line_ = 0;    // length of this size line in bytes
  State state_ = State::complete;
};

}  // namespace carpool::proxy::http
