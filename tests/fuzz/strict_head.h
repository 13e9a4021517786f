// strict_head.h: an independent check of serialized heads: written from RFC 9112 alone, it shares no code with the
// parsers, so that one error cannot hide in both.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace carpool::fuzz {

inline void must(bool holds, const char* what, std::string_view bytes) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n%.*s\n", what, static_cast<int>(bytes.size()), bytes.data());
  std::abort();
}

inline bool token(std::string_view text) {
  for (const char c : text) {
    const bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!alnum && std::string_view("!#$%&'*+-.^_`|~").find(c) == std::string_view::npos) return false;
  }
  return !text.empty();
}

inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return out;
}

// How often each field occurs that frames a message.
struct Counts {
  int host = 0, length = 0, coding = 0, connection = 0, proxy_authorization = 0;
};

// `lines` are the field lines and the empty line after them.
inline Counts strict_fields(std::string_view lines) {
  Counts counts;
  std::string_view rest = lines;
  for (;;) {
    const std::size_t end = rest.find("\r\n");
    must(end != std::string_view::npos, "a head has an end", lines);
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    if (line.empty()) break;
    must(line.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos, "no CR, LF or NUL in a line",
         lines);
    const std::size_t colon = line.find(':');
    must(colon != std::string_view::npos && token(line.substr(0, colon)), "a field has a name", lines);
    const std::string name = lower(line.substr(0, colon));
    counts.host += name == "host";
    counts.length += name == "content-length";
    counts.coding += name == "transfer-encoding";
    counts.connection += name == "connection";
    counts.proxy_authorization += name == "proxy-authorization";
    if (name == "transfer-encoding") must(line.substr(colon) == ": chunked", "chunked alone", lines);
    if (name == "content-length") {
      must(line.substr(colon + 2).find_first_not_of("0123456789") == std::string_view::npos, "a length is digits",
           lines);
    }
  }
  must(rest.empty(), "nothing behind a head", lines);
  must(counts.length + counts.coding <= 1, "one framing", lines);
  must(counts.connection <= 1, "one Connection of our own", lines);
  must(counts.proxy_authorization == 0, "no Proxy-Authorization", lines);
  return counts;
}

}  // namespace carpool::fuzz
