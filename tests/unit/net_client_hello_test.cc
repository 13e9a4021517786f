// Unit tests of read_hello(): the first bytes of OpenSSL, and others made by hand.
#include "proxy/net/tls/client_hello.h"

#include <sys/socket.h>

#include "tests/unit/net_tls_support.h"

namespace carpool::proxy::tls {
namespace {

std::string number(std::size_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = bytes; i-- > 0;) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string vector_of(std::string_view content, std::size_t bytes_of_length) {
  return number(content.size(), bytes_of_length).append(content);
}

std::string extension(std::size_t type, std::string_view content) {
  return number(type, 2) + vector_of(content, 2);
}

std::string name_of(std::string_view host) {
  return extension(0, vector_of(number(0, 1) + vector_of(host, 2), 2));
}

std::string protocols(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += vector_of(name, 1);
  return extension(16, vector_of(list, 2));
}

std::string body_with(std::string_view extensions) {
  return number(0x0303, 2) + std::string(32, 'r') + vector_of("", 1) + vector_of("\x13\x01", 2) +
         vector_of(std::string_view("\0", 1), 1) + std::string(extensions);
}

std::string message_of(std::string_view body) {
  return number(1, 1) + vector_of(body, 3);
}

std::string record(std::string_view content) {
  return number(22, 1) + number(0x0301, 2) + vector_of(content, 2);
}

std::string hello_with(std::string_view extensions) {
  return record(message_of(body_with(vector_of(extensions, 2))));
}

HelloState read(std::string_view bytes, ClientHello& hello) {
  hello = {};
  return read_hello({bytes.data(), bytes.size()}, hello);
}

// Returns the first bytes of OpenSSL as a client.
std::string of_openssl(const std::vector<std::string>& alpn, const std::string& host) {
  const auto server = serve();
  const auto context = trust(*server);
  auto [here, there] = net::tcp_pair();
  net::prepare_socket(here.get());
  const auto client = TlsTransport::client(*context, std::move(here), host, 443);
  if (!alpn.empty()) client->offer(alpn);
  EXPECT_TRUE(client->handshake());
  std::string bytes(16384, '\0');
  net::wait_readable(there.get());
  const ssize_t received = ::recv(there.get(), bytes.data(), bytes.size(), 0);
  bytes.resize(received > 0 ? static_cast<std::size_t>(received) : 0);
  return bytes;
}

TEST(ClientHello, OfOpensslNamesServerAndProtocols) {
  ClientHello hello;
  ASSERT_EQ(read(of_openssl({"h2", "http/1.1"}, "localhost"), hello), HelloState::complete);
  EXPECT_EQ(hello.server_name, "localhost");
  EXPECT_TRUE(hello.offers_protocols && hello.offers_h1 && hello.offers_h2);
  ASSERT_EQ(read(of_openssl({"foo"}, "localhost"), hello), HelloState::complete);
  EXPECT_TRUE(hello.offers_protocols);
  EXPECT_FALSE(hello.offers_h1 || hello.offers_h2);
  ASSERT_EQ(read(of_openssl({}, "127.0.0.1"), hello), HelloState::complete);
  EXPECT_EQ(hello.server_name, "");
  EXPECT_FALSE(hello.offers_protocols);
}

std::string hello_of(std::string_view suites, std::string_view extensions = "") {
  std::string body = number(0x0303, 2) + std::string(32, 'r') + vector_of("", 1);
  body += vector_of(suites, 2) + vector_of(std::string_view("\0", 1), 1) + vector_of(extensions, 2);
  return record(message_of(body));
}

TEST(ClientHello, TellsLibrariesApartByTheirSuitesWithoutTheRandomOnes) {
  ClientHello one, other;
  ASSERT_EQ(read(hello_of("\x13\x01\x13\x02"), one), HelloState::complete);
  ASSERT_EQ(read(hello_of("\x0a\x0a\x13\x01\xfa\xfa\x13\x02"), other), HelloState::complete);
  EXPECT_EQ(one.suites, other.suites);
  ASSERT_EQ(read(hello_of("\x13\x02\x13\x01"), other), HelloState::complete);
  EXPECT_NE(one.suites, other.suites) << "the order counts";
  ASSERT_EQ(read(hello_of("\x0a\x1a\x13\x01\x13\x02"), other), HelloState::complete);
  EXPECT_NE(one.suites, other.suites) << "0x0A1A is not random";
}

TEST(ClientHello, OffersTls13ByItsListOfVersions) {
  ClientHello hello;
  ASSERT_EQ(read(of_openssl({"h2"}, "localhost"), hello), HelloState::complete);
  EXPECT_TRUE(hello.offers_tls13);
  ASSERT_EQ(read(hello_of("\x13\x01", extension(43, vector_of("\x03\x03", 1))), hello), HelloState::complete);
  EXPECT_FALSE(hello.offers_tls13);
  ASSERT_EQ(read(hello_of("\x13\x01", extension(43, vector_of("\x03\x03\x03\x04", 1))), hello), HelloState::complete);
  EXPECT_TRUE(hello.offers_tls13);
}

TEST(ClientHello, SuitsACertificateOnP256ByVersionSuiteSignatureAndGroup) {
  const auto versions = [](std::string_view list) { return extension(43, vector_of(list, 1)); };
  const auto signatures = [](std::string_view list) { return extension(13, vector_of(list, 2)); };
  const auto groups = [](std::string_view list) { return extension(10, vector_of(list, 2)); };
  const auto suits = [](std::string_view suites, const std::string& extensions) {
    ClientHello hello;
    EXPECT_EQ(read(hello_of(suites, extensions), hello), HelloState::complete);
    return hello.suits_p256;
  };
  const std::string_view p256("\x00\x17", 2), p521("\x00\x19", 2);
  const std::string tls13 = versions("\x03\x04");
  EXPECT_TRUE(suits("\x13\x02", tls13 + signatures("\x08\x04\x04\x03") + groups(p256)));
  EXPECT_FALSE(suits("\xc0\x2b", tls13)) << "a suite of TLS 1.2";
  EXPECT_FALSE(suits("\x13\x02", tls13 + signatures("\x08\x04"))) << "RSA alone";
  EXPECT_FALSE(suits("\x13\x02", tls13 + signatures("\x05\x03"))) << "in TLS 1.3 its curve is P-384";
  EXPECT_FALSE(suits("\x13\x02", tls13 + groups(p521)));
  EXPECT_TRUE(suits("\xc0\x2f\xc0\x2b", "")) << "TLS 1.2 has defaults";
  EXPECT_TRUE(suits("\xc0\x2b", versions("\x03\x03") + signatures("\x05\x03")));
  EXPECT_FALSE(suits("\xc0\x2f\xcc\xa8", "")) << "suites of RSA";
  EXPECT_FALSE(suits("\xc0\x2b", signatures("\x04\x01"))) << "RSA alone";
  EXPECT_FALSE(suits("\xc0\x2b", versions("\x03\x02"))) << "TLS 1.1";
  std::string old = hello_of("\xc0\x2b");
  old[10] = '\x02';  // the version, behind the headers of record and message
  ClientHello hello;
  ASSERT_EQ(read(old, hello), HelloState::complete);
  EXPECT_FALSE(hello.suits_p256) << "TLS 1.1";
  ASSERT_EQ(read(of_openssl({"h2"}, "localhost"), hello), HelloState::complete);
  EXPECT_TRUE(hello.suits_p256);
}

TEST(ClientHello, IsIncompleteUntilItsLastByte) {
  const std::string whole = of_openssl({"h2"}, "localhost");
  ClientHello hello;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_EQ(read(std::string_view(whole).substr(0, size), hello), HelloState::incomplete) << size;
  }
  EXPECT_EQ(read(whole + "more", hello), HelloState::complete);
}

TEST(ClientHello, MayBeDividedIntoRecords) {
  const std::string message = message_of(body_with(vector_of(name_of("a.test") + protocols({"h2"}), 2)));
  std::string divided;
  for (const char byte : message) divided += record(std::string(1, byte));
  ClientHello hello;
  ASSERT_EQ(read(divided, hello), HelloState::complete);
  EXPECT_EQ(hello.server_name, "a.test");
  EXPECT_TRUE(hello.offers_h2);
  for (std::size_t size = 0; size < divided.size(); ++size) {
    ASSERT_EQ(read(std::string_view(divided).substr(0, size), hello), HelloState::incomplete) << size;
  }
}

TEST(ClientHello, WithoutExtensionsIsOne) {
  ClientHello hello;
  EXPECT_EQ(read(record(message_of(body_with(""))), hello), HelloState::complete);
  EXPECT_EQ(read(hello_with(""), hello), HelloState::complete);
  EXPECT_FALSE(hello.offers_protocols);
}

TEST(ClientHello, OtherBytesAreNone) {
  ClientHello hello;
  const std::string body = body_with(vector_of(name_of("a.test"), 2));
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("SSH-2.0-x\r\n"), std::string("\x80\x2e\x01\x03\x01", 5),
        std::string("\x16\x02"), std::string("\x16\x02\x01\x00\x05\x01", 6), number(21, 1) + record("x").substr(1),
        record(""), number(22, 1) + number(0x0301, 2) + number(16385, 2), record("\x02\x01\x01\x01"),
        record(message_of(body.substr(0, body.size() - 1))), record(message_of(body + "x")), record(message_of("x")),
        hello_with("\x01"), hello_with(extension(0, "abc").substr(0, 6))}) {
    EXPECT_EQ(read(bytes, hello), HelloState::not_tls) << ::testing::PrintToString(bytes);
  }
}

TEST(ClientHello, BrokenExtensionsNameNothing) {
  ClientHello hello;
  for (const std::string& bytes : {extension(0, ""), extension(0, "\x01"), extension(0, number(9, 2) + "abc"),
                                   extension(0, vector_of(number(0, 1) + number(9, 2) + "abc", 2)),
                                   extension(0, vector_of(number(1, 1) + vector_of("abc", 2), 2)),
                                   extension(16, number(9, 2) + "\x02h2"), extension(16, vector_of("\x09h2", 2))}) {
    EXPECT_EQ(read(hello_with(bytes), hello), HelloState::complete) << ::testing::PrintToString(bytes);
    EXPECT_EQ(hello.server_name, "");
    EXPECT_FALSE(hello.offers_h2);
  }
  EXPECT_EQ(read(hello_with(name_of("a.test") + name_of("b.test")), hello), HelloState::complete);
  EXPECT_EQ(hello.server_name, "a.test");
}

}  // namespace
}  // namespace carpool::proxy::tls
