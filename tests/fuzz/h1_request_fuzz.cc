// h1_request_fuzz: any bytes as requests. Every split gives the same result; an accepted request is serialized as a
// strict head and reads back with the same meaning.
#include <random>

#include "proxy/http/forward.h"
#include "proxy/http/proxy_authorization.h"
#include "tests/fuzz/strict_head.h"
#include "tests/property/h1_reading.h"

namespace carpool::fuzz {
namespace {

using namespace proxy::http;

struct Message {
  RequestHead head;
  Collected content;
};

std::vector<Message> messages(std::string_view bytes, const Limits& limits) {
  std::vector<Message> all;
  RequestReader reader(limits);
  Message now;
  for (;;) {
    const Result<ParseResult> fed = reader.feed(bytes, now.head, now.content);
    if (!fed || fed->progress == Progress::need_more) return all;
    bytes.remove_prefix(fed->consumed);
    if (fed->progress != Progress::message) continue;
    must(reader.at_boundary(), "a boundary behind a message", bytes);
    all.push_back(std::move(now));
    now = {};
    if (bytes.empty()) return all;
  }
}

std::string forwarded(const Message& message, const Target& target) {
  std::string out;
  ForwardRules rules;
  rules.via_pseudonym = "carpool-0badcafe";
  rules.host = "origin.test";
  rules.path = target.path;
  rules.upgrade = message.head.upgrade;
  write_request(out, message.head, rules);
  const std::size_t line = out.find("\r\n");
  must(std::count(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(line), ' ') == 2, "three words", out);
  const Counts counts = strict_fields(std::string_view(out).substr(line + 2));
  must(counts.host == 1, "one Host", out);
  if (message.head.framing == Framing::chunked) {
    if (!message.content.body.empty()) {
      write_chunk_head(out, message.content.body.size());
      out.append(message.content.body).append("\r\n");
    }
    write_last_chunk(out, Fields());
  } else {
    out.append(message.content.body);
  }
  return out;
}

void check_credentials(const Fields& fields) {
  using Form = ProxyAuthorization::Form;
  DecodedCredentials decoded;
  const ProxyAuthorization result = read_proxy_authorization(fields, decoded);
  const std::size_t count = fields.count("proxy-authorization");
  must((count == 0) == (result.form == Form::absent), "the field is there or not", "");
  must(count == 1 || result.form == Form::absent || result.form == Form::malformed, "one field", "");
  must(result.form != Form::basic || result.name.find(':') == std::string_view::npos, "a name ends at the colon",
       result.name);
  must(result.form != Form::bearer || token68(result.secret), "a token", result.secret);
}

void check(const Message& message) {
  check_credentials(message.head.fields);
  const Result<Target> target = parse_target(message.head);
  if (!target) return;
  must(!target->path.empty(), "a path", message.head.target);
  must(message.head.framing != Framing::length || message.content.body.size() == message.head.length, "the length", "");
  const std::string once = forwarded(message, *target);
  Limits wide;
  wide.header_bytes *= 4;
  wide.headers *= 2;
  wide.target *= 2;
  const std::vector<Message> again = messages(once, wide);
  must(again.size() == 1, "one message stays one message", once);
  const RequestHead& head = again[0].head;
  must(head.method == message.head.method, "the method stays", once);
  must(head.framing == message.head.framing && head.length == message.head.length, "the framing stays", once);
  must(again[0].content.body == message.content.body, "the body stays", once);
  must(head.keep_alive && head.expect_continue <= message.head.expect_continue, "a connection of our own", once);
  must(head.upgrade == message.head.upgrade, "an upgrade stays one", once);
  must(via_contains(head.fields, "carpool-0badcafe"), "Via names us", once);
}

}  // namespace
}  // namespace carpool::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace carpool::fuzz;
  if (size < 2) return 0;
  const bool tight = data[0] % 4 == 0;
  const Limits limits = tight ? Limits{.header_bytes = 256, .headers = 6, .target = 48} : Limits{};
  std::minstd_rand random(data[1]);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);

  const Reading whole = read_requests(bytes, {}, limits);
  std::vector<std::size_t> cuts(random() % 5);
  for (std::size_t& cut : cuts) cut = random() % (bytes.size() + 1);
  std::sort(cuts.begin(), cuts.end());
  must(whole == read_requests(bytes, cuts, limits), "some cuts read the same", bytes);
  must(whole == read_requests(bytes, every_byte(bytes.size()), limits), "all cuts read the same", bytes);
  static FieldLayouts layouts;  // of all inputs of this run
  for (int time = 0; time < 3; ++time) {
    must(whole == read_requests(bytes, {}, limits, &layouts), "known layouts read the same", bytes);
  }
  must(whole == read_requests(bytes, cuts, limits, &layouts), "known layouts and some cuts read the same", bytes);
  for (const Message& message : messages(bytes, limits)) check(message);
  return 0;
}
