// Unit tests of SessionStore.
#include "proxy/net/tls/session_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace carpool::proxy::tls {
namespace {

// Returns a length and its content in DER, for contents of 256 to 65535 bytes.
std::string sized(const std::string& content) {
  std::string out("\x82");
  out += static_cast<char>(content.size() >> 8);
  out += static_cast<char>(content.size() & 255);
  return out + content;
}

// Returns a session of TLS 1.3 with a ticket of this size. OpenSSL sets a ticket only in a handshake, or reads it.
SessionPtr with_ticket(std::size_t size) {
  const SslCtxPtr context(SSL_CTX_new(TLS_method()));
  const std::unique_ptr<SSL, FreeWith<SSL_free>> ssl(SSL_new(context.get()));
  const SessionPtr blank(SSL_SESSION_new());
  SSL_SESSION_set_protocol_version(blank.get(), TLS1_3_VERSION);
  const unsigned char aes128[] = {0x13, 0x01};
  SSL_SESSION_set_cipher(blank.get(), SSL_CIPHER_find(ssl.get(), aes128));
  unsigned char* encoded = nullptr;
  const int length = i2d_SSL_SESSION(blank.get(), &encoded);
  EXPECT_GT(length, 2);
  EXPECT_LT(encoded[1], 0x80) << "a length of one byte";
  std::string fields(reinterpret_cast<const char*>(encoded) + 2, static_cast<std::size_t>(length) - 2);
  OPENSSL_free(encoded);
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(fields[at]); };
  std::size_t at = 0;
  while (at < fields.size() && byte(at) < 0xAA) at += std::size_t{2} + byte(at + 1);
  fields.insert(at, "\xAA" + sized("\x04" + sized(std::string(size, 't'))));  // [10] EXPLICIT OCTET STRING
  const std::string whole = "\x30" + sized(fields);
  const auto* from = reinterpret_cast<const unsigned char*>(whole.data());
  SessionPtr session(d2i_SSL_SESSION(nullptr, &from, static_cast<long>(whole.size())));
  EXPECT_NE(session, nullptr);
  return session;
}

TEST(ASessionStore, KeepsNoTicketThatIsTooLong) {
  SessionStore store;
  store.put("a.test:443", with_ticket(SessionStore::kMaxTicket));
  EXPECT_EQ(store.size(), 1U);
  EXPECT_NE(store.take("a.test:443"), nullptr);
  store.put("a.test:443", with_ticket(SessionStore::kMaxTicket + 1));
  EXPECT_EQ(store.size(), 0U);
}

}  // namespace
}  // namespace carpool::proxy::tls
