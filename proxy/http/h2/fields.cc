#include "proxy/http/h2/fields.h"

#include <array>
#include <charconv>

#include "proxy/http/connection_options.h"
#include "proxy/http/hop_by_hop.h"

namespace carpool::proxy::http {

namespace {

constexpr std::size_t kKeptH2Fields = 64;

std::string_view number(std::uint64_t value, std::array<char, 20>& text) {
  return {text.data(),
          static_cast<std::size_t>(std::to_chars(text.data(), text.data() + text.size(), value).ptr - text.data())};
}

void add_number(H2Fields& out, std::string_view name, std::uint64_t value) {
  std::array<char, 20> text;
  out.add_value(name, number(value, text));
}

void add_via(H2Fields& out, Version received, std::string_view pseudonym) {
  if (pseudonym.empty()) return;
  constexpr std::array<std::string_view, 3> kReceived{"1.0 ", "1.1 ", "2.0 "};
  out.add_value("via", kReceived[static_cast<std::size_t>(received)], pseudonym);
}

void refer(H2Fields& out, const Fields::Field& field, bool sensitive) {
  out.refer(field.name, field.value, sensitive);
}

void add_status(H2Fields& out, std::uint16_t status) {
  const char text[3] = {static_cast<char>('0' + status / 100), static_cast<char>('0' + status / 10 % 10),
                        static_cast<char>('0' + status % 10)};
  out.add_value(":status", {text, sizeof text});
}

}  // namespace

void H2Fields::clear() {
  text_.clear();
  spans_.clear();
  bytes_ = 0;
}

void H2Fields::shrink() {
  shrink_text(text_);
  if (spans_.capacity() > kKeptH2Fields) spans_.shrink_to_fit();
}

void H2Fields::add(std::string_view name, std::string_view value, bool sensitive) {
  const std::uint32_t at = size_of(text_);
  text_.append(name).append(value);
  bytes_ += name.size() + value.size();
  push({nullptr, nullptr, size_of(name), size_of(value), at, sensitive});
}

void H2Fields::own() {
  text_.reserve(text_.size() + bytes_);  // so that no text moves while it is copied
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    Span& span = spans_[i];
    if (span.name == nullptr) continue;
    const Field field = (*this)[i];
    span.at = size_of(text_);
    text_.append(field.name).append(field.value);
    span.name = span.value = nullptr;
  }
}

void H2Fields::copy_from(const H2Fields& other) {
  clear();
  for (std::size_t i = 0; i < other.size(); ++i) add(other[i].name, other[i].value, other[i].sensitive);
}

void h2_request(H2Fields& out, const RequestHead& head, const ForwardRules& rules, const H2PseudoFields& pseudo) {
  out.clear();
  const Fields& fields = head.fields;
  const auto options = ConnectionOptions::naming_fields_of(head);
  out.refer(":method", pseudo.protocol.empty() ? std::string_view(head.method) : "CONNECT");
  if (!pseudo.protocol.empty()) out.refer(":protocol", pseudo.protocol);
  out.refer(":scheme", pseudo.scheme);
  out.refer(":authority", rules.host);
  if (rules.path.starts_with('?')) {
    out.add(":path", std::string("/").append(rules.path));
  } else {
    out.refer(":path", rules.path, head.sensitive_target);
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (passes(head, i, options, rules)) refer(out, fields[i], fields.sensitive(i));
  }
  for (std::size_t i = 0; rules.set != nullptr && i < rules.set->size(); ++i) refer(out, (*rules.set)[i], true);
  if (!rules.client_name.empty()) out.refer(rules.client_name, rules.client_value);
  if (!rules.traceparent.empty()) out.refer("traceparent", rules.traceparent);
  if (rules.max_forwards >= 0) add_number(out, "max-forwards", static_cast<std::uint64_t>(rules.max_forwards));
  if (asks_for_trailers(head, options)) out.refer("te", "trailers");
  if (head.framing == Framing::length) add_number(out, "content-length", head.length);
  add_via(out, head.version, rules.via_pseudonym);
}

void h2_response(H2Fields& out, const ResponseHead& head, const ReplyRules& rules) {
  out.clear();
  const Fields& fields = head.fields;
  const auto options = ConnectionOptions::naming_fields_of(head);
  add_status(out, head.status);
  const bool length = keeps_length(head, rules);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const bool challenge = rules.own && fields.id(i) == FieldName::proxy_authenticate;
    if (challenge || returns(fields, i, options, length)) refer(out, fields[i], fields.sensitive(i));
  }
  if (head.framing == Framing::length) add_number(out, "content-length", head.length);
  add_via(out, head.version, rules.via_pseudonym);
}

void h2_informational(H2Fields& out, const ResponseHead& head, std::string_view via_pseudonym) {
  out.clear();
  const Fields& fields = head.fields;
  const auto options = ConnectionOptions::naming_fields_of(head);
  add_status(out, head.status);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (returns(fields, i, options, false)) refer(out, fields[i], fields.sensitive(i));
  }
  add_via(out, head.version, via_pseudonym);
}

}  // namespace carpool::proxy::http
