// h2_server_fuzz: any bytes as HTTP/2 from a client, with a session owner that responds at random: no input corrupts
// the session, each reported request is a strict message, every split gives the same result, and memory is bounded.
#include <random>

#include "proxy/http/forward.h"
#include "tests/fuzz/strict_head.h"
#include "tests/fuzz/whole_frames.h"
#include "tests/unit/http_h2_support.h"

namespace carpool::fuzz {
namespace {

using namespace proxy::http;

void check(const StreamRecord& record) {
  const RequestHead& head = record.request;
  must(!head.method.empty(), "a method", head.target);
  must(record.body.size() <= head.length || head.framing != Framing::length, "the length is kept", head.target);
  must(!record.ended || head.framing != Framing::length || record.body.size() == head.length, "a whole body",
       head.target);
  const Result<Target> target = parse_target(head);
  if (!target || head.method == "CONNECT") return;
  ForwardRules rules;
  rules.via_pseudonym = "carpool-0badcafe";
  rules.host = "origin.test";
  rules.path = target->path;
  std::string out;
  write_request(out, head, rules);
  const std::size_t line = out.find("\r\n");
  must(std::count(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(line), ' ') == 2, "three words", out);
  must(strict_fields(std::string_view(out).substr(line + 2)).host == 1, "one Host", out);
}

constexpr std::uint16_t kAnswered = 200;  // in the record of a server, which receives no response

// Responds to open streams, in pieces or at once, resets them, or leaves them waiting.
void act(End& server, std::minstd_rand& random) {
  H2Fields fields;
  fields.add(":status", "200");
  for (auto& [id, record] : server.streams) {
    if (record.stream == nullptr) continue;
    H2Stream& stream = *record.stream;
    switch (random() % 6) {
      case 0:
        if (record.response.status == kAnswered) break;
        server.session.respond(stream, fields, true);
        server.session.leave(stream);
        record.stream = nullptr;
        break;
      case 1:
        record.stream = nullptr;
        server.session.reset(stream, H2Error::cancel);
        break;
      case 2:
        server.session.consume(stream, random() % 4096);
        break;
      case 3:
        if (record.response.status != kAnswered) server.session.respond(stream, fields, false);
        record.response.status = kAnswered;
        server.session.body(stream, std::string(random() % 70000, 'b'));
        if (random() % 2 == 0) break;  // more follows, or a reset
        server.session.end(stream);
        server.session.leave(stream);
        record.stream = nullptr;
        break;
      default:
        break;
    }
  }
}

void play(std::string_view bytes, unsigned seed, const H2Options& options) {
  End server(H2Role::server, options);
  std::minstd_rand random(seed);
  std::string said;
  const std::string all = std::string(seed % 16 == 0 ? "" : kH2Preface).append(bytes);
  unsigned rounds = 8;  // after the last byte
  for (std::string_view rest = all; (!rest.empty() || rounds-- > 0) && !server.session.over();) {
    const std::size_t size = std::min<std::size_t>(rest.size(), 1 + random() % (seed % 4 == 0 ? 8 : 4096));
    if (size != 0) server.receive(rest.substr(0, size));
    rest.remove_prefix(size);
    act(server, random);
    if (random() % 2 == 0) said += server.pull(random() % 30000);
    server.now += std::chrono::milliseconds(random() % 20);
  }
  said += server.pull();
  whole_frames(said);
  must(server.session.library_memory() <= options.memory, "memory has its bound", "");
  for (const auto& [id, record] : server.streams) check(record);
}

// Without an owner that interferes, the split must not matter, except for events that a protocol error ends: those of
// the same read are not reported. Nothing is compared after a client's GOAWAY: with no open stream the session is over,
// and yet requests in the same read are served.
std::string told(std::string_view bytes, std::size_t piece) {
  End server(H2Role::server);
  server.receive(kH2Preface);
  for (std::size_t at = 0; at < bytes.size(); at += piece) server.receive(bytes.substr(at, piece));
  server.pull();
  if (server.session.over() || server.goaway.first >= 0) return "over";
  std::string all;
  for (const auto& [id, record] : server.streams) {
    if (record.closed && record.reason != H2Error::no_error) continue;
    all += std::to_string(id) + record.request.method + record.request.target + record.body + (record.ended ? "." : "");
  }
  return all;
}

}  // namespace
}  // namespace carpool::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace carpool::fuzz;
  if (size < 2) return 0;
  H2Options options;
  if (data[0] % 4 == 0) options.memory = std::size_t{64} << 10;
  if (data[0] % 3 == 0) options.head = {.header_bytes = 256, .headers = 6, .target = 48};
  if (data[0] % 5 == 0) options.max_streams = 2;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  play(bytes, data[1] * 256U + data[0], options);
  if (data[0] % 8 == 0) must(told(bytes, bytes.size()) == told(bytes, 7), "any split tells the same", bytes);
  return 0;
}
