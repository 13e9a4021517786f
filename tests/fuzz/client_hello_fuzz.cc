// client_hello_fuzz: any bytes as the first ones of a client inside a CONNECT. A verdict that is not "incomplete" is
// final, and a name that is found lies within the bytes.
#include "proxy/net/tls/client_hello.h"
#include "tests/fuzz/strict_head.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace carpool;
  using proxy::tls::ClientHello, proxy::tls::HelloState;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ClientHello whole;
  const HelloState state = proxy::tls::read_hello({text.data(), text.size()}, whole);
  fuzz::must(whole.server_name.size() <= size, "a name is a part of the bytes", text);
  fuzz::must(whole.offers_protocols || !(whole.offers_h1 || whole.offers_h2), "a protocol is one of ALPN", text);
  for (const std::size_t cut : {size / 2, size - size / 8, size - (size > 0 ? 1 : 0)}) {
    ClientHello part;
    const HelloState before = proxy::tls::read_hello({text.data(), cut}, part);
    if (before == HelloState::incomplete) continue;
    fuzz::must(before == state, "more bytes do not change what is final", text);
    fuzz::must(part.server_name == whole.server_name, "nor the name", text);
  }
  return 0;
}
