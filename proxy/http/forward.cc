#include "proxy/http/forward.h"

#include <algorithm>
#include <array>

#include "proxy/http/connection_options.h"
#include "proxy/http/framing.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/member_reader.h"
#include "proxy/http/text_writer.h"

namespace carpool::proxy::http {

namespace {

// Estimated size of what is written besides the fields, so that one reserve() replaces several growths.
constexpr std::size_t kAround = 256;

void append_via(TextWriter& out, Version received, std::string_view pseudonym) {
  if (pseudonym.empty()) return;
  constexpr std::array<std::string_view, 3> kBegin{"Via: 1.0 ", "Via: 1.1 ", "Via: 2.0 "};  // indexed by Version
  out.add(kBegin[static_cast<std::size_t>(received)]).add(pseudonym).add("\r\n");
}

void append_framing(TextWriter& out, Framing framing, std::uint64_t length) {
  if (framing == Framing::chunked) {
    out.add("Transfer-Encoding: chunked\r\n");
  } else if (framing == Framing::length) {
    out.add("Content-Length: ").add(length).add("\r\n");
  }
}

// Copies the fields that `keep` accepts; adjacent fields are copied at once.
template <class Keep>
void append_fields(TextWriter& out, const Fields& fields, const Keep& keep) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (keep(i)) continue;
    if (first != i) out.add(fields.lines(first, i));
    first = i + 1;
  }
  if (first != fields.size()) out.add(fields.lines(first, fields.size()));
}

// Appends "Upgrade: a, b", or nothing if no protocol is left. `h2c`: also this protocol.
bool append_upgrade(TextWriter& out, const Fields& fields, bool h2c = false) {
  bool any = false;
  MemberReader list(fields, FieldName::upgrade);
  for (std::string_view protocol; list.next(protocol);) {
    if (!h2c && iequals(protocol, "h2c")) continue;
    out.add(any ? ", " : "Upgrade: ").add(protocol);
    any = true;
  }
  if (any) out.add("\r\n");
  return any;
}

void append_status_line(TextWriter& out, const ResponseHead& head) {
  const char status[3] = {static_cast<char>('0' + head.status / 100 % 10),
                          static_cast<char>('0' + head.status / 10 % 10), static_cast<char>('0' + head.status % 10)};
  out.add("HTTP/1.1 ").add({status, sizeof status}).add(" ").add(head.reason).add("\r\n");
}

// `upgrade`: the head has an Upgrade field. With `close`, as while load is shed, no idle time is announced.
void append_persistence(TextWriter& out, Version client_version, bool close, std::uint32_t keep_alive, bool upgrade) {
  if (close) {
    out.add(upgrade ? "Connection: Upgrade, close\r\n" : "Connection: close\r\n");
  } else if (client_version == Version::http10 || keep_alive != 0) {
    out.add(upgrade ? "Connection: Upgrade, keep-alive\r\n" : "Connection: keep-alive\r\n");
  } else if (upgrade) {
    out.add("Connection: Upgrade\r\n");
  }
  if (!close && keep_alive != 0) out.add("Keep-Alive: timeout=").add(std::uint64_t{keep_alive}).add("\r\n");
}

void reserve(std::string& out, std::size_t more) {
  if (out.capacity() - out.size() < more) out.reserve(std::max(2 * out.capacity(), out.size() + more));
}

bool separator(char c) {
  return c == ' ' || c == '\t' || c == ',';
}

}  // namespace

std::uint32_t announced_keep_alive(Duration idle_timeout) {
  constexpr Duration kMaxTransit = std::chrono::seconds(1);
  if (idle_timeout <= Duration::zero()) return 0;
  const Duration announced = idle_timeout - std::max(kMaxTransit, idle_timeout / 10);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(announced / std::chrono::seconds(1), 0, 86'400));
}

void append_persistence(std::string& out, Version client_version, bool close, std::uint32_t keep_alive) {
  TextWriter text(out);
  append_persistence(text, client_version, close, keep_alive, false);
}

// A member of Via is "protocol pseudonym comment"; no other word of it resembles one of our pseudonyms.
bool via_contains(const Fields& fields, std::string_view pseudonym) {
  if (!fields.may_have(FieldName::via)) return false;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields.id(i) != FieldName::via) continue;
    const std::string_view value = fields[i].value;
    for (std::size_t at = value.find(pseudonym); at != std::string_view::npos; at = value.find(pseudonym, at + 1)) {
      const std::size_t end = at + pseudonym.size();
      if (at > 0 && separator(value[at - 1]) && (end == value.size() || separator(value[end]))) return true;
    }
  }
  return false;
}

std::string members_of_via(const Fields& fields, std::size_t limit) {
  std::string all;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields.id(i) != FieldName::via || fields[i].value.empty()) continue;
    all.append(all.empty() ? "" : ", ").append(fields[i].value);
  }
  if (all.size() <= limit) return all;
  const std::size_t comma = all.find(',', all.size() - limit);
  const std::size_t begin = comma == std::string::npos ? comma : all.find_first_not_of(" \t", comma + 1);
  return begin == std::string::npos ? std::string() : all.substr(begin);
}

namespace {
// RFC 9110 §8.6: a method that anticipates content has a length also without it. A client of HTTP/2 states that by
// END_STREAM.
bool lacks_length(const RequestHead& head) {
  if (head.version != Version::http2 || head.framing != Framing::none) return false;
  return head.has_method("POST") || head.has_method("PUT") || head.has_method("PATCH");
}
}  // namespace

void write_request(std::string& to, const RequestHead& head, const ForwardRules& rules) {
  const Fields& fields = head.fields;
  const ConnectionOptions options = ConnectionOptions::naming_fields_of(head);
  const std::size_t set_bytes = rules.set == nullptr ? 0 : rules.set->bytes();
  reserve(to, fields.bytes() + set_bytes + head.method.size() + rules.path.size() + rules.host.size() +
                  rules.absolute.size() + rules.proxy_authorization.size() + kAround);
  TextWriter out(to);
  out.add(head.method).add(" ").add(rules.absolute).add(rules.path.starts_with('?') ? "/" : "");
  if (rules.absolute.empty() || rules.path != "*") out.add(rules.path);  // RFC 9112 §3.2.4
  out.add(" HTTP/1.1\r\nHost: ").add(rules.host).add("\r\n");
  if (!rules.proxy_authorization.empty()) out.add("Proxy-Authorization: ").add(rules.proxy_authorization).add("\r\n");
  append_fields(out, fields, [&](std::size_t i) { return passes(head, i, options, rules); });
  if (rules.set != nullptr) out.add(rules.set->lines(0, rules.set->size()));
  if (!rules.client_name.empty()) out.add(rules.client_name).add(": ").add(rules.client_value).add("\r\n");
  if (!rules.traceparent.empty()) out.add("traceparent: ").add(rules.traceparent).add("\r\n");
  if (rules.max_forwards >= 0) {
    out.add("Max-Forwards: ").add(static_cast<std::uint64_t>(rules.max_forwards)).add("\r\n");
  }
  const bool upgrade = rules.upgrade && append_upgrade(out, fields);
  const bool trailers = asks_for_trailers(head, options);
  if (trailers) out.add("TE: trailers\r\n");
  if (upgrade || trailers) {
    out.add("Connection: ").add(upgrade ? "Upgrade" : "").add(upgrade && trailers ? ", " : "");
    out.add(trailers ? "TE\r\n" : "\r\n");
  }
  append_framing(out, lacks_length(head) ? Framing::length : head.framing, head.length);
  append_via(out, head.version, rules.via_pseudonym);
  out.add("\r\n");
}

Framing reply_framing(const ResponseHead& head, const ReplyRules& rules) {
  if (head.framing != Framing::chunked && head.framing != Framing::until_close) return head.framing;
  return rules.client_version == Version::http10 ? Framing::until_close : Framing::chunked;
}

bool keeps_length(const ResponseHead& head, const ReplyRules& rules) {
  const bool kept = head.status == 304 || (rules.head_request && head.status >= 200 && head.status != 204);
  return kept && announces_length(head.fields);
}

void write_response(std::string& to, const ResponseHead& head, const ReplyRules& rules) {
  const Fields& fields = head.fields;
  const ConnectionOptions options = ConnectionOptions::naming_fields_of(head);
  reserve(to, fields.bytes() + head.reason.size() + kAround);
  TextWriter out(to);
  append_status_line(out, head);
  const bool length = keeps_length(head, rules);
  append_fields(out, fields, [&](std::size_t i) { return returns(fields, i, options, length); });
  if (rules.upgrade && append_upgrade(out, fields)) {
    out.add("Connection: Upgrade\r\n");
  } else {
    // 426 names the protocols that the origin requires (RFC 9110 §15.5.22); a client of HTTP/1.0 cannot change to one.
    constexpr int kUpgradeRequired = 426;
    const bool named =
        head.status == kUpgradeRequired && rules.client_version == Version::http11 && append_upgrade(out, fields, true);
    append_persistence(out, rules.client_version, rules.close, rules.keep_alive, named);
  }
  append_framing(out, reply_framing(head, rules), head.length);
  append_via(out, head.version, rules.via_pseudonym);
  out.add("\r\n");
}

void write_informational(std::string& to, const ResponseHead& head, std::string_view via_pseudonym) {
  const Fields& fields = head.fields;
  const ConnectionOptions options = ConnectionOptions::naming_fields_of(head);
  TextWriter out(to);
  append_status_line(out, head);
  append_fields(out, fields, [&](std::size_t i) { return returns(fields, i, options, false); });
  append_via(out, head.version, via_pseudonym);
  out.add("\r\n");
}

bool trailer_allowed(std::string_view name, bool grpc) {
  if (field_name(name) != FieldName::other) return false;
  if (grpc) return true;
  constexpr std::array kNever = {
      std::string_view("age"),
      std::string_view("authorization"),
      std::string_view("cache-control"),
      std::string_view("content-encoding"),
      std::string_view("content-range"),
      std::string_view("content-type"),
      std::string_view("cookie"),
      std::string_view("date"),
      std::string_view("expires"),
      std::string_view("forwarded"),
      std::string_view("if-match"),
      std::string_view("if-modified-since"),
      std::string_view("if-none-match"),
      std::string_view("if-range"),
      std::string_view("if-unmodified-since"),
      std::string_view("location"),
      std::string_view("origin"),
      std::string_view("pragma"),
      std::string_view("proxy-status"),
      std::string_view("range"),
      std::string_view("referer"),
      std::string_view("retry-after"),
      std::string_view("set-cookie"),
      std::string_view("set-cookie2"),
      std::string_view("vary"),
      std::string_view("warning"),
      std::string_view("www-authenticate"),
      std::string_view("x-forwarded-for"),
      std::string_view("x-forwarded-host"),
      std::string_view("x-forwarded-proto"),
  };
  return std::none_of(kNever.begin(), kNever.end(), [&](std::string_view word) { return iequals(word, name); });
}

}  // namespace carpool::proxy::http
