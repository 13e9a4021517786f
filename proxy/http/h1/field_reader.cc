#include "proxy/http/h1/field_reader.h"

#include <llhttp.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "base/assert.h"
#include "proxy/http/char_class.h"
#include "proxy/http/connection_options.h"
#include "proxy/http/h1/codec.h"
#include "proxy/http/h1/field_layouts.h"

namespace carpool::proxy::http {

namespace {

// Call: the destination of the callbacks during one feed(). A field that is whole in the bytes of this call, in the
// usual form "Name: value" CRLF, is only announced; adjacent ones are copied at once, as one run. Any other field is
// copied piece by piece.
class Call {
 public:
  Call(Fields& fields, BodySink* trailers, std::size_t most, std::string_view bytes, bool open)
      : fields_(fields), trailers_(trailers), most_(most), end_(bytes.data() + bytes.size()), open_(open) {}

  void add_name(std::string_view piece) {
    if (!open_ && name_.data() == nullptr) {
      name_ = piece;
    } else {
      copy_pieces();
      fields_.append_name(piece);
    }
  }
  // Returns false if it is not a token (RFC 9110 §5.1).
  bool end_name() {
    if (open_) return fields_.end_name();
    id_ = field_name(name_);
    named_ = id_ != FieldName::other || is_token(name_);
    return named_;
  }
  void add_value(std::string_view piece) {
    if (!open_ && value_.data() == nullptr) {
      value_ = piece;
    } else {
      copy_pieces();
      fields_.append_value(piece);
    }
  }
  void end_value();
  // Must be called at the end of the bytes: copies the pieces of an unfinished field. Returns true if there is one.
  bool end_bytes() {
    if (name_.data() != nullptr) copy_pieces();
    copy_run();
    return open_;
  }

  const char* error = nullptr;

 private:
  static bool is_token(std::string_view name) { return !name.empty() && prefix_of(name, kToken).size() == name.size(); }
  static bool white(char c) { return c == ' ' || c == '\t'; }
  bool in_usual_form() const;
  void copy_run() {
    if (run_ != nullptr) fields_.append_lines({run_, static_cast<std::size_t>(run_end_ - run_)});
    run_ = nullptr;
  }
  void copy_pieces();
  void end_trailer();

  Fields& fields_;
  BodySink* const trailers_;
  const std::size_t most_;
  const char* const end_;      // of the bytes
  const char* run_ = nullptr;  // fields that are announced
  const char* run_end_ = nullptr;
  std::string_view name_, value_;  // of the current field, unless its pieces are in the arena
  FieldName id_ = FieldName::other;
  bool named_ = false;
  bool open_;
};

bool Call::in_usual_form() const {
  const char* const after_name = name_.data() + name_.size();
  const char* const after_value = value_.data() + value_.size();
  return !value_.empty() && value_.data() == after_name + 2 && after_name[0] == ':' && after_name[1] == ' ' &&
         end_ - after_value >= 2 && after_value[0] == '\r' && after_value[1] == '\n' && !white(value_.front()) &&
         !white(value_.back());
}

void Call::copy_pieces() {
  if (open_) return;
  copy_run();
  open_ = true;
  fields_.append_name(name_);
  if (named_) {
    fields_.end_name();
    fields_.append_value(value_);
  }
  name_ = value_ = {};
}

void Call::end_value() {
  if (fields_.size() >= most_ &&
      trailers_ == nullptr) {  // the line count rejects the head later, in byte order with other errors
    if (open_) fields_.abandon();
  } else if (open_ || trailers_ != nullptr || !in_usual_form()) {
    copy_pieces();
    fields_.commit();
    if (trailers_ != nullptr) end_trailer();
  } else {
    if (run_end_ != name_.data()) copy_run();
    if (run_ == nullptr) run_ = name_.data();
    run_end_ = value_.data() + value_.size() + 2;
    fields_.announce(name_, value_.size(), id_);
  }
  name_ = value_ = {};
  named_ = open_ = false;
}

void Call::end_trailer() {
  const Fields::Field field = fields_[fields_.size() - 1];
  if (!ConnectionOptions(fields_).lists(field.name)) trailers_->on_trailer(field.name, field.value, false);
  fields_.pop_back();
}

Call& call(llhttp_t* parser) {
  return *static_cast<Call*>(parser->data);
}

int on_name(llhttp_t* parser, const char* at, std::size_t size) {
  call(parser).add_name({at, size});
  return HPE_OK;
}

// llhttp reads every value as plain text: what framing and Connection mean is decided by resolve_framing(), where a
// tab around a value is white space too, and not for trailers.
int on_name_end(llhttp_t* parser) {
  constexpr std::uint8_t kOrdinaryField = 0;
  parser->header_state = kOrdinaryField;
  if (call(parser).end_name()) return HPE_OK;
  call(parser).error = "a field name that is not a token";
  return HPE_USER;
}

int on_value(llhttp_t* parser, const char* at, std::size_t size) {
  call(parser).add_value({at, size});
  return HPE_OK;
}

int on_value_end(llhttp_t* parser) {
  call(parser).end_value();
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
  static_assert(sizeof(llhttp_t) <= kParserBytes && alignof(llhttp_t) <= alignof(void*) &&
                std::is_trivially_copyable_v<llhttp_t>);
  std::memcpy(parser_.data(), &at_first_field(), sizeof(llhttp_t));
  lines_ = {};
  bytes_ = 0;
  open_ = false;
}

Step FieldSection::feed(std::string_view bytes, Fields& into, const Limits& limits, BodySink* trailers) {
  const std::size_t room = limits.header_bytes - bytes_;
  const std::string_view now = bytes.substr(0, room);
  auto& parser = *std::launder(reinterpret_cast<llhttp_t*>(parser_.data()));
  Call target(into, trailers, limits.headers, now, open_);
  parser.data = &target;
  const llhttp_errno_t end = llhttp_execute(&parser, now.data(), now.size());
  open_ = target.end_bytes();

  Step step;
  step.consumed = now.size();
  if (end != HPE_OK) {
    const auto at = static_cast<std::size_t>(llhttp_get_error_pos(&parser) - now.data());
    step.consumed = std::min(now.size(), end == HPE_PAUSED ? at : at + 1);
  }
  bytes_ += static_cast<std::uint32_t>(step.consumed);
  step.error = check(now.substr(0, step.consumed), limits, step.too_large);
  if (step.error != nullptr) return step;
  step.done = end == HPE_PAUSED;
  if (end != HPE_OK && !step.done) {
    step.error = target.error != nullptr ? target.error : llhttp_get_error_reason(&parser);
  } else if (!step.done && bytes_ == limits.header_bytes) {
    step.error = "the header fields exceed the limit in bytes";
    step.too_large = true;
  }
  return step;
}

Step FieldSection::feed_head(std::string_view bytes, Fields& into, const Limits& limits, FieldLayouts* layouts) {
  if (layouts == nullptr || bytes_ != 0) return feed(bytes, into, limits, nullptr);
  const FieldLayouts::Found found = layouts->find(bytes);
  if (found.size == 0 || found.size > limits.header_bytes) return feed(bytes, into, limits, nullptr);
  if (found.layout == nullptr || found.layout->fields() > limits.headers) {
    const Step step = feed(bytes, into, limits, nullptr);
    if (step.done && step.consumed == found.size) layouts->learn(bytes.substr(0, found.size), found.hash, into);
    return step;
  }
  into.adopt(*found.layout, bytes.substr(0, found.size - FieldLayouts::kEmptyLine));
  Step step;
  step.consumed = found.size;
  step.done = true;
  return step;
}

const char* FieldSection::check(std::string_view bytes, const Limits& limits, bool& too_large) {
  const char* error = lines_.check(bytes);
  if (lines_.lines() <= limits.headers) return error;
  too_large = true;
  return "the number of header fields exceeds the limit";
}

}  // namespace carpool::proxy::http
