#include "proxy/http/h1/body_reader.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/assert.h"
#include "proxy/http/h1/codec.h"

namespace carpool::proxy::http {

namespace {
constexpr std::uint32_t kMaxSizeLine = 4096;
// The size lines of a body may exceed its data, and this much for each chunk, by 64 KiB in total.
constexpr std::uint64_t kFreeLine = 128;
constexpr std::uint32_t kMaxExcess = 64 * 1024;
constexpr std::uint64_t kMaxChunk = std::uint64_t{1} << 60;  // one more digit still fits 64 bits
}  // namespace

void BodyReader::start(Framing framing, std::uint64_t length) {
  left_ = 0;
  line_ = 0;
  excess_ = 0;
  switch (framing) {
    case Framing::none:
      state_ = State::complete;
      break;
    case Framing::length:
      left_ = length;
      state_ = length == 0 ? State::complete : State::length;
      break;
    case Framing::chunked:
      state_ = State::size_first;
      break;
    case Framing::until_close:
      state_ = State::until_close;
      break;
  }
}

Step BodyReader::feed(std::string_view bytes, FieldSection& section, Fields& scratch, const Limits& limits,
                      BodySink& sink) {
  Step step;
  while (state_ != State::complete && step.consumed < bytes.size()) {
    const std::string_view rest = bytes.substr(step.consumed);
    if (state_ == State::trailers) {
      const Step trailers = section.feed(rest, scratch, limits, &sink);
      step.consumed += trailers.consumed;
      step.error = trailers.error;
      if (trailers.done) state_ = State::complete;
      if (step.error != nullptr) return step;
      continue;
    }
    if (state_ == State::length || state_ == State::data || state_ == State::until_close) {
      step.consumed += pass(rest, sink);
      continue;
    }
    step.error = byte(rest.front());
    if (step.error != nullptr) return step;
    ++step.consumed;
    if (state_ == State::trailers) section.start();
  }
  step.done = state_ == State::complete;
  return step;
}

std::size_t BodyReader::pass(std::string_view bytes, BodySink& sink) {
  if (state_ == State::until_close) {
    sink.on_body(bytes);
    return bytes.size();
  }
  const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  sink.on_body(bytes.substr(0, now));
  left_ -= now;
  if (left_ == 0) state_ = state_ == State::length ? State::complete : State::data_cr;
  return now;
}

void BodyReader::skip(std::uint64_t bytes) {
  CARPOOL_ASSERT(bytes <= length_left());
  left_ -= bytes;
  if (left_ == 0) state_ = State::complete;
}

// Consumes one byte of the lines between chunks.
const char* BodyReader::byte(char c) {
  switch (state_) {
    case State::size_first:
      if (hex_value(c) < 0) return "a chunk without a size";
      left_ = 0;
      line_ = 0;
      state_ = State::size;
      return digit(c);
    case State::size:
      if (hex_value(c) >= 0) return digit(c);
      [[fallthrough]];
    case State::extension_gap:
    case State::extension:
      return in_extension(c);
    case State::size_lf:
      return c == '\n' ? end_of_size() : "a chunk size line that does not end in CRLF";
    case State::data_cr:
      state_ = State::data_lf;
      return c == '\r' ? nullptr : "a chunk that does not end in CRLF";
    case State::data_lf:
      state_ = State::size_first;
      return c == '\n' ? nullptr : "a chunk that does not end in CRLF";
    default:
      return "no chunk is being read";
  }
}

const char* BodyReader::digit(char c) {
  left_ = left_ * 16 + static_cast<std::uint64_t>(hex_value(c));
  if (left_ >= kMaxChunk) return "a chunk size that is too large";
  return ++line_ > kMaxSizeLine ? "a chunk size line that is too long" : nullptr;
}

// After the size: CR ends the line, ";" starts an extension, which is skipped.
const char* BodyReader::in_extension(char c) {
  if (++line_ > kMaxSizeLine) return "a chunk size line that is too long";
  if (c == '\r') {
    if (state_ == State::extension_gap) return "white space after a chunk size";
    state_ = State::size_lf;
    return nullptr;
  }
  if (state_ == State::extension) {
    const auto code = static_cast<unsigned char>(c);
    return (code < 0x20 && c != '\t') || code == 0x7F ? "a control byte in a chunk extension" : nullptr;
  }
  if (c == ';') {
    state_ = State::extension;
  } else if (c == ' ' || c == '\t') {
    state_ = State::extension_gap;
  } else {
    return "a chunk size with other than hexadecimal digits";
  }
  return nullptr;
}

const char* BodyReader::end_of_size() {
  excess_ += line_;
  excess_ -= static_cast<std::uint32_t>(std::min<std::uint64_t>(excess_, kFreeLine + left_));
  if (excess_ > kMaxExcess) return "chunk extensions that are too long in total";
  state_ = left_ == 0 ? State::trailers : State::data;
  return nullptr;
}

}  // namespace carpool::proxy::http
