#include "proxy/net/tls/client_hello.h"

#include <cstddef>
#include <new>
#include <string_view>

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {
namespace {

// Reads the fields of an extension. What it returns beyond the end is empty.
class Fields {
 public:
  explicit Fields(std::span<const unsigned char> bytes) : left_(bytes) {}
  bool empty() const { return left_.empty(); }
  unsigned number() {
    const auto byte = take(1);
    return byte.empty() ? 0 : byte.front();
  }
  std::span<const unsigned char> list() {
    const unsigned high = number();
    return take((high << 8U) + number());
  }
  std::span<const unsigned char> take(std::size_t size) {
    if (size > left_.size()) {
      left_ = {};
      return {};
    }
    const auto taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }

 private:
  std::span<const unsigned char> left_;
};

std::string_view text(std::span<const unsigned char> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const unsigned char> extension(SSL* ssl, unsigned type) {
  const unsigned char* bytes = nullptr;
  std::size_t size = 0;
  if (SSL_client_hello_get0_ext(ssl, type, &bytes, &size) != 1) return {};
  return {bytes, size};
}

// RFC 6066 §3.
void read_name(std::span<const unsigned char> bytes, ClientHello& hello) {
  constexpr unsigned kHostName = 0;
  Fields names(Fields(bytes).list());
  while (!names.empty()) {
    const unsigned type = names.number();
    const std::string_view name = text(names.list());
    if (type == kHostName && hello.server_name.empty()) hello.server_name = name;
  }
}

// RFC 7301 §3.1.
void read_protocols(std::span<const unsigned char> bytes, ClientHello& hello) {
  hello.offers_protocols = !bytes.empty();
  Fields protocols(Fields(bytes).list());
  while (!protocols.empty()) {
    const std::string_view protocol = text(protocols.take(protocols.number()));
    hello.offers_h1 |= protocol == "http/1.1";
    hello.offers_h2 |= protocol == "h2";
  }
}

struct Seen {
  ClientHello& hello;
  bool complete = false;
};

int on_hello(SSL* ssl, int* alert, void*) {
  auto& seen = *static_cast<Seen*>(SSL_get_app_data(ssl));
  read_name(extension(ssl, TLSEXT_TYPE_server_name), seen.hello);
  read_protocols(extension(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation), seen.hello);
  seen.complete = true;
  *alert = SSL_AD_USER_CANCELLED;
  return SSL_CLIENT_HELLO_ERROR;  // nothing more is wanted of it
}

SSL_CTX* reader() {
  static const SslCtxPtr made = [] {
    SslCtxPtr context(SSL_CTX_new(TLS_server_method()));
    if (context == nullptr) throw std::bad_alloc();  // the next call tries again
    SSL_CTX_set_client_hello_cb(context.get(), on_hello, nullptr);
    return context;
  }();
  return made.get();
}

}  // namespace

HelloState read_hello(std::span<const char> bytes, ClientHello& hello) {
  constexpr char kHandshakeRecord = 22;  // RFC 8446 §5.1
  if (bytes.empty()) return HelloState::incomplete;
  if (bytes.front() != kHandshakeRecord) return HelloState::not_tls;
  ERR_clear_error();
  const SslPtr ssl(SSL_new(reader()));
  BioPtr in(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size()))), out(BIO_new(BIO_s_null()));
  if (!ssl || !in || !out) throw std::bad_alloc();
  BIO_set_mem_eof_return(in.get(), -1);  // the end of the bytes is no end of the connection
  SSL_set_bio(ssl.get(), in.release(), out.release());
  Seen seen{hello};
  SSL_set_app_data(ssl.get(), &seen);
  const int result = SSL_accept(ssl.get());
  const bool wants_more = SSL_get_error(ssl.get(), result) == SSL_ERROR_WANT_READ;
  ERR_clear_error();
  if (seen.complete) return HelloState::complete;
  return wants_more ? HelloState::incomplete : HelloState::not_tls;
}

}  // namespace carpool::proxy::tls
