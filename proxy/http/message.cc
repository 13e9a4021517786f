#include "proxy/http/message.h"

#include <string.h>  // NOLINT(modernize-deprecated-headers): explicit_bzero

#include <utility>

#include "base/assert.h"
#include "proxy/http/char_class.h"
#include "proxy/http/text_writer.h"

namespace carpool::proxy::http {

namespace {
constexpr std::size_t kKeptBytes = 4096;
constexpr std::size_t kKeptFields = 64;

std::uint32_t offset(std::size_t at) {
  return static_cast<std::uint32_t>(at);
}

// Each request calls it several times, and nearly always nothing is to be freed.
[[gnu::always_inline]] inline void shrink_inline(std::string& text) {
  if (text.capacity() > kKeptBytes) [[unlikely]]
    text.shrink_to_fit();
}
}  // namespace

void shrink_text(std::string& text) {
  shrink_inline(text);
}

void Fields::clear() {
  arena_.clear();
  spans_.clear();
  seen_ = 0;
  open_value_ = 0;
}

void Fields::wipe(std::size_t bytes) {
  ::explicit_bzero(arena_.data(), arena_.size());
  clear();
  arena_.reserve(bytes);
}

void Fields::add(std::string_view name, std::string_view value) {
  append_name(name);
  end_name();
  append_value(value);
  commit();
}

void Fields::add(std::string_view name, std::string_view value, FieldName id) {
  announce(name, value.size(), id);
  TextWriter(arena_).add(name).add(": ").add(value).add("\r\n");
}

bool Fields::end_name() {
  const std::string_view name = std::string_view(arena_).substr(open_at());
  bool token = !name.empty();
  for (const char c : name) token = token & kToken[static_cast<unsigned char>(c)];
  arena_.append(": ");
  open_value_ = offset(arena_.size());
  return token;
}

void Fields::commit() {
  std::size_t end = arena_.size();
  while (end > open_value_ && white(arena_[end - 1])) --end;
  std::size_t leading = open_value_;
  while (leading < end && white(arena_[leading])) ++leading;
  if (end != arena_.size()) arena_.resize(end);
  if (leading != open_value_) arena_.erase(open_value_, leading - open_value_);
  arena_.append("\r\n");
  const std::uint32_t name = offset(open_at());
  const std::string_view text = std::string_view(arena_).substr(name, open_value_ - kNameEnd - name);
  const FieldName id = field_name(text);
  seen_ |= bit(id);
  spans_.push_back({name, open_value_, offset(arena_.size()), id, false});
  open_value_ = 0;
}

void Fields::announce(std::string_view name, std::size_t value_size, FieldName id) {
  const std::uint32_t from = offset(open_at());
  const std::uint32_t value = from + offset(name.size()) + kNameEnd;
  seen_ |= bit(id);
  spans_.push_back({from, value, value + offset(value_size) + kValueEnd, id, false});
}

void Fields::abandon() {
  arena_.resize(open_at());
  open_value_ = 0;
}

void Fields::pop_back() {
  spans_.pop_back();
  abandon();
}

Fields::Layout Fields::layout() const {
  Layout made;
  made.spans_.assign(spans_.begin(), spans_.end());
  made.seen_ = seen_;
  return made;
}

void Fields::adopt(const Layout& layout, std::string_view text) {
  CARPOOL_ASSERT(spans_.empty() && arena_.empty() && text.size() == layout.spans_.back().end);
  arena_ = text;
  spans_.assign(layout.spans_.begin(), layout.spans_.end());
  seen_ = layout.seen_;
}

std::string_view Fields::get(std::string_view name) const {
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    const Field field = (*this)[i];
    if (iequals(field.name, name)) return field.value;
  }
  return {};
}

std::string_view Fields::get(FieldName id) const {
  if (!may_have(id)) return {};
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    if (spans_[i].id == id) return (*this)[i].value;
  }
  return {};
}

bool Fields::has(std::string_view name) const {
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    if (iequals((*this)[i].name, name)) return true;
  }
  return false;
}

std::size_t Fields::count(FieldName id) const {
  if (!may_have(id)) return 0;
  std::size_t found = 0;
  for (const Span& span : spans_) found += span.id == id ? 1 : 0;
  return found;
}

std::size_t Fields::count(std::string_view name) const {
  std::size_t found = 0;
  for (std::size_t i = 0; i < spans_.size(); ++i) found += iequals((*this)[i].name, name) ? 1 : 0;
  return found;
}

std::string_view Fields::lines(std::size_t first, std::size_t last) const {
  if (first >= last) return {};
  const std::size_t from = spans_[first].name;
  return std::string_view(arena_).substr(from, spans_[last - 1].end - from);
}

void Fields::shrink() {
  shrink_inline(arena_);
  if (spans_.capacity() > kKeptFields) spans_.shrink_to_fit();
}

// Assigning a string exchanges allocated memory, and copies what has none; a vector would free its own.
Fields& Fields::operator=(Fields&& other) noexcept {
  arena_ = std::move(other.arena_);
  spans_.swap(other.spans_);
  seen_ = other.seen_;
  open_value_ = other.open_value_;
  other.clear();
  return *this;
}

void RequestHead::clear() {
  method.clear();
  target.clear();
  if (version == Version::http2) {  // otherwise they are empty, and their memory is not touched
    scheme.clear();
    authority.clear();
    protocol.clear();
    sensitive_target = false;
  }
  version = Version::http11;
  fields.clear();
  framing = Framing::none;
  length = 0;
  keep_alive = lists_fields = true;
  expect_continue = upgrade = ends_later = false;
}

void RequestHead::shrink() {
  shrink_inline(target);
  shrink_inline(authority);
  fields.shrink();
}

void ResponseHead::clear() {
  status = 0;
  reason.clear();
  version = Version::http11;
  fields.clear();
  framing = Framing::none;
  length = 0;
  keep_alive = lists_fields = true;
  unclear_length = ends_later = false;
}

void ResponseHead::shrink() {
  fields.shrink();
}

}  // namespace carpool::proxy::http
