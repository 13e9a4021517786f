#include "proxy/http/h1/field_reader.h"

#include <llhttp.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/assert.h"
#include "proxy/http/connection_options.h"
#include "proxy/http/h1/codec.h"

namespace carpool::proxy::http {

namespace {

// Call: the destination of the callbacks during one feed().
struct Call {
  Fields& fields;
  BodySink* trailers;
  std::size_t most;
  const char* wrong = nullptr;
};

Call& call(llhttp_t* parser) {
  return *static_cast<Call*>(parser->data);
}

int on_name(llhttp_t* parser, const char* at, std::size_t size) {
  call(parser).fields.append_name({at, size});
  return HPE_OK;
}

int on_name_end(llhttp_t* parser) {
  if (call(parser).fields.end_name()) return HPE_OK;
  call(parser).wrong = "a field name that is not a token";
  return HPE_USER;
}

int on_value(llhttp_t* parser, const char* at, std::size_t size) {
  call(parser).fields.append_value({at, size});
  return HPE_OK;
}

int on_value_end(llhttp_t* parser) {
  Call& c = call(parser);
  if (c.fields.size() >= c.most && c.trailers == nullptr) {
    c.fields.abandon();  // over the limit: the line count rejects the head later, in byte order with other errors
    return HPE_OK;
  }
  c.fields.commit();
  if (c.trailers == nullptr) return HPE_OK;
  const Fields::Field field = c.fields[c.fields.size() - 1];
  if (!ConnectionOptions(c.fields).lists(field.name)) c.trailers->on_trailer(field.name, field.value);
  c.fields.pop_back();
  return HPE_OK;
}

int on_end(llhttp_t* /*parser*/) {
  return HPE_PAUSED;
}

const llhttp_settings_t& settings() {
  static const llhttp_settings_t made = [] {
    llhttp_settings_t s;
    llhttp_settings_init(&s);
    s.on_header_field = on_name;
    s.on_header_field_complete = on_name_end;
    s.on_header_value = on_value;
    s.on_header_value_complete = on_value_end;
    s.on_headers_complete = on_end;
    return s;
  }();
  return made;
}

// A parser that has just read a start line; each section starts from a copy of it.
const llhttp_t& at_first_field() {
  static const llhttp_t made = [] {
    static constexpr std::string_view kLine = "POST / HTTP/1.1\r\n";
    llhttp_t parser;
    llhttp_init(&parser, HTTP_REQUEST, &settings());
    const llhttp_errno_t end = llhttp_execute(&parser, kLine.data(), kLine.size());
    CARPOOL_ASSERT(end == HPE_OK);
    return parser;
  }();
  return made;
}

}  // namespace

void FieldSection::start() {
  static_assert(sizeof(llhttp_t) <= kParserBytes && std::is_trivially_copyable_v<llhttp_t>);
  std::memcpy(parser_.data(), &at_first_field(), sizeof(llhttp_t));
  lines_ = {};
  bytes_ = 0;
}

Step FieldSection::feed(std::string_view bytes, Fields& into, const Limits& limits, BodySink* trailers) {
  const std::size_t room = limits.header_bytes - bytes_;
  const std::string_view now = bytes.substr(0, room);
  llhttp_t parser;
  std::memcpy(&parser, parser_.data(), sizeof parser);
  Call target{into, trailers, limits.headers};
  parser.data = &target;
  const llhttp_errno_t end = llhttp_execute(&parser, now.data(), now.size());
  std::memcpy(parser_.data(), &parser, sizeof parser);

  Step step;
  step.taken = now.size();
  if (end != HPE_OK) {
    const auto at = static_cast<std::size_t>(llhttp_get_error_pos(&parser) - now.data());
    step.taken = std::min(now.size(), end == HPE_PAUSED ? at : at + 1);
  }
  bytes_ += static_cast<std::uint32_t>(step.taken);
  step.wrong = check(now.substr(0, step.taken), limits, step.too_large);
  if (step.wrong != nullptr) return step;
  step.done = end == HPE_PAUSED;
  if (end != HPE_OK && !step.done) {
    step.wrong = target.wrong != nullptr ? target.wrong : llhttp_get_error_reason(&parser);
  } else if (!step.done && bytes_ == limits.header_bytes) {
    step.wrong = "the header fields exceed the limit in bytes";
    step.too_large = true;
  }
  return step;
}

const char* FieldSection::check(std::string_view bytes, const Limits& limits, bool& too_large) {
  const char* wrong = lines_.check(bytes);
  if (lines_.lines() <= limits.headers) return wrong;
  too_large = true;
  return "the number of header fields exceeds the limit";
}

}  // namespace carpool::proxy::http
