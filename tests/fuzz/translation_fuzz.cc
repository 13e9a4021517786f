// translation_fuzz: a message sent as HTTP/1.1 and the same message sent as HTTP/2 reach an HTTP/1.1 origin alike: the
// same request line and the same fields in the same order.
#include "proxy/http/forward.h"
#include "proxy/http/h1/codec.h"
#include "proxy/http/h2/fields.h"
#include "proxy/http/h2/head_reader.h"
#include "tests/fuzz/strict_head.h"

namespace carpool::fuzz {
namespace {

using namespace proxy::http;

struct Nothing final : BodySink {
  void on_body(std::string_view) override {}
  void on_trailer(std::string_view, std::string_view, bool) override {}
};

// The forwarded request, names in lower case; without Via, which differs between the versions, and with cookies in one
// line.
std::string forwarded(const RequestHead& head, std::string_view path) {
  ForwardRules rules;
  rules.via_pseudonym = "carpool-0badcafe";
  rules.host = "origin.test";
  rules.path = path;
  std::string out;
  write_request(out, head, rules);
  std::string all, cookies;
  std::string_view rest = out;
  bool first = true;
  for (std::size_t end = rest.find("\r\n"); end != std::string_view::npos && end != 0; end = rest.find("\r\n")) {
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    const std::string name = lower(line.substr(0, std::min(line.find(':'), line.size())));
    if (std::exchange(first, false)) {
      all.append(line).append("\n");
    } else if (name == "cookie") {
      const std::string_view value = line.substr(std::min(line.size(), name.size() + 2));
      if (!value.empty()) cookies.append(cookies.empty() ? "" : "; ").append(value);
    } else if (name == "content-length" && head.version == Version::http2 && head.framing == Framing::none) {
      continue;  // carpool adds it to a POST without a body; a client of HTTP/1.1 chooses itself
    } else if (name != "via" && name != "te" && name != "connection") {
      all.append(name).append(line.substr(name.size())).append("\n");
    }
  }
  return all + "cookie: " + cookies;
}

}  // namespace
}  // namespace carpool::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace carpool::fuzz;
  RequestHead sent;
  Nothing nothing;
  RequestReader reader({});
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const carpool::Result<ParseResult> fed = reader.feed(bytes, sent, nothing);
  if (!fed || fed->progress != Progress::head || sent.version != Version::http11) return 0;
  const carpool::Result<Target> target = parse_target(sent);
  if (!target || sent.method == "CONNECT" || sent.upgrade) return 0;
  ForwardRules rules;
  rules.host = "a.test";
  rules.path = target->path;
  H2Fields fields;
  h2_request(fields, sent, rules, {"http", {}});

  H2HeadReader other({});
  RequestHead received;
  other.begin_request(received);
  for (std::size_t i = 0; i < fields.size(); ++i) other.field(lower(fields[i].name), fields[i].value, false);
  const bool bodyless = sent.framing == Framing::none || (sent.framing == Framing::length && sent.length == 0);
  const H2HeadReader::Outcome outcome = other.end_request(bodyless, true);
  if (outcome == H2HeadReader::Outcome::too_large) return 0;  // each field counts 32 bytes more in HTTP/2
  must(outcome == H2HeadReader::Outcome::good, other.error() == nullptr ? "good" : other.error(), bytes);
  const carpool::Result<Target> again = parse_target(received);
  must(static_cast<bool>(again), "a target stays one", bytes);
  const std::string one = forwarded(sent, target->path), two = forwarded(received, again->path);
  if (one != two) std::fprintf(stderr, "--- as HTTP/1.1\n%s\n--- as HTTP/2\n%s\n", one.c_str(), two.c_str());
  must(one == two, "the origin gets the same", bytes);
  return 0;
}
