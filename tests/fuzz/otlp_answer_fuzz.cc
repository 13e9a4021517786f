// otlp_answer_fuzz: any bytes as the response of a collector. The text about it is bounded and printable, and a field
// never lies outside its message.
#include <algorithm>

#include "base/protobuf.h"
#include "proxy/telemetry/otlp_envelope.h"
#include "tests/fuzz/strict_head.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace carpool;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ProtobufReader reader(text);
  std::size_t taken = 0;
  while (const auto field = reader.next()) {
    taken += field->bytes.size() + 1;
    fuzz::must(field->number != 0, "a field has a number", text);
  }
  fuzz::must(taken <= size, "the fields are parts of the message", text);
  const Result<proxy::otlp::ExportResponse> response = proxy::otlp::read_response(text);
  fuzz::must(!response || reader.valid(), "an answer is a message", text);
  if (!response) return 0;
  const std::string& message = response->message;
  fuzz::must(message.size() <= 256, "its text is cut", text);
  fuzz::must(std::all_of(message.begin(), message.end(), [](char c) { return c >= ' ' && c <= '~'; }),
             "its text is printable", text);
  return 0;
}
