// h1_response_fuzz: any bytes as an origin's responses. Every split gives the same result; an accepted response is
// serialized as a strict head and reads back with the same meaning.
#include <random>

#include "proxy/http/forward.h"
#include "tests/fuzz/strict_head.h"
#include "tests/property/h1_reading.h"

namespace carpool::fuzz {
namespace {

using namespace proxy::http;

struct Message {
  ResponseHead head;
  Collected content;
  bool whole = false;
  bool upgraded = false;
};

Message read_one(std::string_view bytes, std::string_view method, bool upgrade, const Limits& limits) {
  Message now;
  ResponseReader reader(limits);
  reader.expect(method, upgrade);
  for (;;) {
    const Result<ParseResult> fed = reader.feed(bytes, now.head, now.content);
    if (!fed) return now;
    bytes.remove_prefix(fed->consumed);
    if (fed->progress == Progress::head && now.head.status < 200) {
      std::string out;
      write_informational(out, now.head, "carpool-0badcafe");
      strict_fields(std::string_view(out).substr(out.find("\r\n") + 2));
    }
    if (fed->progress == Progress::need_more) {
      now.whole = static_cast<bool>(reader.finish());
      return now;
    }
    now.whole = fed->progress == Progress::message;
    now.upgraded = fed->progress == Progress::upgraded;
    if (now.whole || now.upgraded) return now;
  }
}

void check(const Message& message, std::string_view method, Version version) {
  ReplyRules rules;
  rules.via_pseudonym = "carpool-0badcafe";
  rules.client_version = version;
  rules.head_request = method == "HEAD";
  rules.upgrade = message.upgraded;
  const Framing framing = reply_framing(message.head, rules);
  rules.close = framing == Framing::until_close;
  std::string out;
  write_response(out, message.head, rules);
  const std::size_t line = out.find("\r\n");
  must(out.starts_with("HTTP/1.1 ") && out[12] == ' ', "a status line", out);
  const Counts counts = strict_fields(std::string_view(out).substr(line + 2));
  must(counts.coding == 0 || version != Version::http10, "no transfer coding to HTTP/1.0", out);
  if (framing == Framing::chunked) {
    if (!message.content.body.empty()) {
      write_chunk_head(out, message.content.body.size());
      out.append(message.content.body).append("\r\n");
    }
    write_last_chunk(out, Fields());
  } else {
    out.append(message.content.body);
  }
  Limits wide;
  wide.header_bytes *= 4;
  wide.headers *= 2;
  const Message again = read_one(out, method, message.upgraded, wide);
  must(again.whole || again.upgraded, "a whole message stays whole", out);
  must(again.head.status == message.head.status && again.head.reason == message.head.reason, "the status stays", out);
  must(again.head.framing == framing, "the framing stays", out);
  must(again.content.body == message.content.body, "the body stays", out);
}

}  // namespace
}  // namespace carpool::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace carpool::fuzz;
  if (size < 2) return 0;
  const bool tight = data[0] % 4 == 0;
  const char* method = data[0] % 8 < 4 ? "GET" : data[0] % 16 < 12 ? "HEAD" : "CONNECT";
  const bool upgrade = data[0] & 16;
  const Version version = data[0] & 32 ? Version::http10 : Version::http11;
  const Limits limits = tight ? Limits{.header_bytes = 256, .headers = 6, .target = 48} : Limits{};
  std::minstd_rand random(data[1]);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);

  const Reading whole = read_response(bytes, {}, method, upgrade, limits);
  std::vector<std::size_t> cuts(random() % 5);
  for (std::size_t& cut : cuts) cut = random() % (bytes.size() + 1);
  std::sort(cuts.begin(), cuts.end());
  must(whole == read_response(bytes, cuts, method, upgrade, limits), "some cuts read the same", bytes);
  must(whole == read_response(bytes, every_byte(bytes.size()), method, upgrade, limits), "all cuts read the same",
       bytes);
  static FieldLayouts layouts;  // of all inputs of this run
  for (int time = 0; time < 3; ++time) {
    must(whole == read_response(bytes, {}, method, upgrade, limits, &layouts), "known layouts read the same", bytes);
  }
  const Message message = read_one(bytes, method, upgrade, limits);
  if (message.whole || message.upgraded) check(message, method, version);
  return 0;
}
