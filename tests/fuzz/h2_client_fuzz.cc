// h2_client_fuzz: any bytes as HTTP/2 from an origin: each reported response is serialized as a strict HTTP/1.1
// message, and no input corrupts the session.
#include <random>

#include "proxy/http/forward.h"
#include "tests/fuzz/strict_head.h"
#include "tests/fuzz/whole_frames.h"
#include "tests/unit/http_h2_support.h"

namespace carpool::fuzz {
namespace {

using namespace proxy::http;

void check(const StreamRecord& record) {
  if (record.response.status == 0) return;
  must(record.response.status >= 200 && record.response.status != 101, "a final status", "");
  ReplyRules rules;
  rules.via_pseudonym = "carpool-0badcafe";
  std::string out;
  write_response(out, record.response, rules);
  strict_fields(std::string_view(out).substr(out.find("\r\n") + 2));
  if (record.response.framing == Framing::none) must(record.body.empty(), "no body where none may be", record.body);
  if (record.ended && record.response.framing == Framing::length) {
    must(record.body.size() == record.response.length, "a whole body", record.body);
  }
}

}  // namespace
}  // namespace carpool::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace carpool::fuzz;
  if (size < 2) return 0;
  H2Options options;
  if (data[0] % 4 == 0) options.memory = std::size_t{64} << 10;
  End client(H2Role::client, options);
  std::minstd_rand random(data[1]);
  H2Fields fields;
  for (const auto& [name, value] : get()) fields.add(name, value);
  const bool bodiless = data[0] % 2 == 0;
  std::string said;
  StreamRecord asked[3];
  for (StreamRecord& record : asked) {
    const carpool::Result<H2Stream*> stream = client.session.request(fields, record, bodiless, &record == &asked[2]);
    if (stream) record.stream = *stream;
    if (data[0] % 16 < 8) said += client.pull();
  }
  std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  unsigned rounds = 8;  // after the last byte
  while ((!rest.empty() || rounds-- > 0) && !client.session.over()) {
    const std::size_t piece = std::min<std::size_t>(rest.size(), 1 + random() % 512);
    if (piece != 0) client.receive(rest.substr(0, piece));
    rest.remove_prefix(piece);
    for (StreamRecord& record : asked) {
      if (record.stream == nullptr) continue;
      if (random() % 8 == 0) client.session.consume(*record.stream, random() % 4096);
      if (!bodiless && random() % 4 == 0) client.session.body(*record.stream, std::string(random() % 70000, 'u'));
      if (random() % 16 == 0) client.session.reset(*std::exchange(record.stream, nullptr), H2Error::cancel);
    }
    said += client.pull(random() % 30000);
  }
  said += client.pull();
  whole_frames(std::string_view(said).substr(std::min(said.size(), kH2Preface.size())));
  for (const StreamRecord& record : asked) check(record);
  return 0;
}
