#include "proxy/downstream/h2_websocket.h"

#include <sys/random.h>

#include <array>

#include "base/assert.h"
#include "proxy/net/tls/digest.h"

namespace carpool::proxy {

namespace {
constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455 §1.3

std::string draw_key() {
  std::array<unsigned char, 16> bytes;
  const ssize_t drawn = ::getrandom(bytes.data(), bytes.size(), 0);
  CARPOOL_ASSERT(drawn == static_cast<ssize_t>(bytes.size()));
  return tls::base64({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}
}  // namespace

std::string ask_for_upgrade(http::RequestHead& head) {
  head.method = "GET";
  head.upgrade = true;
  head.fields.add("Connection", "Upgrade");
  head.fields.add("Upgrade", head.protocol);
  if (!http::iequals(head.protocol, "websocket")) return {};  // RFC 9110 §7.8: names of protocols have any case
  std::string key = draw_key();
  head.fields.add("Sec-WebSocket-Key", key);
  return key;
}

bool accepts(const http::ResponseHead& head, std::string_view key) {
  const std::string expected = tls::base64(tls::sha1(std::string(key).append(kGuid)));
  return head.fields.get("sec-websocket-accept") == expected;
}

}  // namespace carpool::proxy
