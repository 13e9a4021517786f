#include "tests/unit/net_tls_support.h"

namespace carpool::proxy::tls {
namespace {

using namespace std::chrono_literals;
using net::Io;

ServerSettings only_tls12() {
  ServerSettings settings;
  settings.max_version = "1.2";
  return settings;
}

// Reads what the server sends by itself after the handshake.
bool read_tickets(Talk& talk) {
  while (net::wait_readable(talk.client->fd(), 0) && talk.client->no_data_pending()) {
  }
  return talk.client->no_data_pending();
}

TEST(Tls, SpeaksToAServerItTrusts) {
  const auto server = serve();
  const auto client = trust(*server);
  Talk talk(*client, *server);
  ASSERT_TRUE(talk.up) << talk.refusal->detail;
  EXPECT_EQ(talk.client->security().version, "TLSv1.3");
  EXPECT_FALSE(talk.client->security().cipher.empty());
  EXPECT_FALSE(talk.client->security().resumed);
  EXPECT_EQ(Talk::write(*talk.client, "ping").bytes, 4U);
  EXPECT_EQ(Talk::read(*talk.server), "ping");
  EXPECT_EQ(Talk::write(*talk.server, "pong").bytes, 4U);
  EXPECT_EQ(Talk::read(*talk.client), "pong");
}

TEST(Tls, SpeaksTls12) {
  const auto server = serve(only_tls12());
  const auto client = trust(*server);
  Talk talk(*client, *server);
  ASSERT_TRUE(talk.up);
  EXPECT_EQ(talk.client->security().version, "TLSv1.2");
  Talk::write(*talk.client, "ping");
  EXPECT_EQ(Talk::read(*talk.server), "ping");
}

TEST(Tls, RefusesAServerBelowItsLeastVersion) {
  const auto server = serve(only_tls12());
  ClientSettings settings;
  settings.min_version = "1.3";
  const auto client = trust(*server, settings);
  Talk talk(*client, *server);
  ASSERT_TRUE(talk.refusal);
  EXPECT_EQ(talk.refusal->kind, FaultKind::tls_protocol);
}

TEST(Tls, NegotiatesAnApplicationProtocol) {
  const auto server = serve();
  ClientSettings settings;
  settings.alpn = {"h2", "http/1.1"};
  const auto client = trust(*server, settings);
  Talk talk(*client, *server);
  ASSERT_TRUE(talk.up);
  EXPECT_EQ(talk.client->security().alpn, "http/1.1");
}

TEST(Tls, RefusesACertificateForAnotherName) {
  ServerSettings other;
  other.names = {"example.org", "*.example.org"};
  const auto server = serve(other);
  const auto client = trust(*server);
  Talk talk(*client, *server, "api.example.com");
  ASSERT_TRUE(talk.refusal);
  EXPECT_EQ(talk.refusal->kind, FaultKind::tls_certificate);
  EXPECT_NE(talk.refusal->detail.find("certificate is for example.org, *.example.org, wanted api.example.com"),
            std::string::npos)
      << talk.refusal->detail;
}

TEST(Tls, MatchesWildcardsOfWholeLabelsOnly) {
  ServerSettings wild;
  wild.names = {"*.example.org", "w*.example.net"};
  const auto server = serve(wild);
  const auto client = trust(*server);
  EXPECT_TRUE(Talk(*client, *server, "a.example.org").up);
  EXPECT_FALSE(Talk(*client, *server, "a.b.example.org").up);
  EXPECT_FALSE(Talk(*client, *server, "www.example.net").up);
  EXPECT_FALSE(Talk(*client, *server, "example.org").up);
}

TEST(Tls, VerifiesAnAddressAgainstTheCertificatesAddresses) {
  const auto server = serve();
  const auto client = trust(*server);
  EXPECT_TRUE(Talk(*client, *server, "127.0.0.1").up);
  EXPECT_TRUE(Talk(*client, *server, "::1").up);
  Talk wrong(*client, *server, "127.0.0.2");
  ASSERT_TRUE(wrong.refusal);
  EXPECT_NE(wrong.refusal->detail.find("wanted 127.0.0.2"), std::string::npos) << wrong.refusal->detail;
}

TEST(Tls, TakesTheConfiguredServerNameForTheHost) {
  ServerSettings other;
  other.names = {"example.org"};
  const auto server = serve(other);
  ClientSettings settings;
  settings.server_name = "example.org";
  const auto client = trust(*server, settings);
  EXPECT_TRUE(Talk(*client, *server, "10.0.0.1").up);
}

TEST(Tls, RefusesAnExpiredCertificate) {
  ServerSettings old;
  old.valid_from = -48h;
  old.valid_until = -24h;
  const auto server = serve(old);
  const auto client = trust(*server);
  Talk talk(*client, *server);
  ASSERT_TRUE(talk.refusal);
  EXPECT_EQ(talk.refusal->kind, FaultKind::tls_certificate);
  EXPECT_NE(talk.refusal->detail.find("certificate has expired: localhost"), std::string::npos) << talk.refusal->detail;
}

TEST(Tls, RefusesAnUnknownAuthority) {
  const auto server = serve(), stranger = serve();
  const auto client = trust(*stranger);
  Talk talk(*client, *server);
  ASSERT_TRUE(talk.refusal);
  EXPECT_EQ(talk.refusal->kind, FaultKind::tls_certificate);
  EXPECT_NE(
      talk.refusal->detail.find("self-signed certificate: no trusted authority (ca_file) issued that of localhost"),
      std::string::npos)
      << talk.refusal->detail;
}

TEST(Tls, AcceptsAnythingWhenItIsToldNotToVerify) {
  const auto server = serve();
  ClientSettings settings;
  settings.verify = false;
  auto client = ClientContext::make(settings);
  ASSERT_TRUE(client);
  EXPECT_TRUE(Talk(**client, *server, "whatever.test").up);
}

TEST(Tls, ShowsItsOwnCertificateWhenAsked) {
  const Identity known, own;
  ServerSettings strict = own.served(only_tls12());
  strict.client_ca_file = known.certificate.path();
  const auto server = serve(strict);
  ClientSettings settings;
  settings.cert_file = known.certificate.path();
  settings.key_file = known.key.path();
  EXPECT_TRUE(Talk(*trust(own.certificate.path(), settings), *server).up);
  Talk without(*trust(own.certificate.path()), *server);
  ASSERT_TRUE(without.refusal);
  EXPECT_EQ(without.refusal->kind, FaultKind::tls_protocol);
}

TEST(Tls, NamesTheFileThatItCouldNotLoad) {
  ClientSettings settings;
  settings.ca_file = "/nowhere/ca.pem";
  auto made = ClientContext::make(settings);
  ASSERT_FALSE(made);
  EXPECT_NE(made.fault().detail.find("/nowhere/ca.pem"), std::string::npos);
  settings.ca_file.clear();
  settings.min_version = "1.7";
  EXPECT_FALSE(ClientContext::make(settings));
}

TEST(Tls, SaysSoWhenThePeerDoesNotSpeakTls) {
  const auto server = serve();
  const auto client = trust(*server);
  auto [here, there] = net::tcp_pair();
  net::prepare_socket(here.get());
  const auto stream = TlsTransport::client(*client, std::move(here), "localhost", 80);
  ASSERT_TRUE(stream->handshake());
  ASSERT_EQ(::send(there.get(), "HTTP/1.1 400 Bad Request\r\n\r\n", 28, 0), 28);
  net::wait_readable(stream->fd());
  auto done = stream->handshake();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.fault().kind, FaultKind::tls_protocol);
  EXPECT_NE(done.fault().detail.find("does not seem to speak TLS"), std::string::npos) << done.fault().detail;
}

// The steps after the server's flight are expensive: verifying and signing. A fast server must not decide which thread
// runs them.
TEST(Tls, LeavesAResponseThatIsThereAlreadyUnreadWhenItSaysHello) {
  const auto server = serve();
  const auto client = trust(*server);
  auto [here, there] = net::tcp_pair();
  net::prepare_socket(here.get());
  ASSERT_EQ(::send(there.get(), "HTTP/1.1 400 Bad Request\r\n\r\n", 28, 0), 28);
  net::wait_readable(here.get());
  const auto stream = TlsTransport::client(*client, std::move(here), "localhost", 80);
  const auto said = stream->hello();
  ASSERT_TRUE(said) << said.fault().detail;
  EXPECT_FALSE(*said);
  net::wait_readable(there.get());
  std::array<char, 8192> flight{};
  EXPECT_GT(::recv(there.get(), flight.data(), flight.size(), 0), 100);
  EXPECT_FALSE(stream->handshake());
}

TEST(Tls, SaysSoWhenThePeerHangsUpInTheHandshake) {
  const auto server = serve();
  const auto client = trust(*server);
  auto [here, there] = net::tcp_pair();
  net::prepare_socket(here.get());
  const auto stream = TlsTransport::client(*client, std::move(here), "localhost", 443);
  ASSERT_TRUE(stream->handshake());
  ::shutdown(there.get(), SHUT_WR);
  net::wait_readable(stream->fd());
  auto done = stream->handshake();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.fault().detail, "TLS handshake with localhost:443: closed by peer");
}

TEST(Tls, ResumesWithASingleUseTicket) {
  const auto server = serve();
  const auto client = trust(*server);
  {
    Talk first(*client, *server);
    ASSERT_TRUE(first.up);
    ASSERT_TRUE(read_tickets(first));
  }
  const auto tickets = client->sessions();
  EXPECT_EQ(tickets, 1U);
  Talk second(*client, *server);
  ASSERT_TRUE(second.up);
  EXPECT_TRUE(second.client->security().resumed);
  EXPECT_EQ(client->sessions(), tickets - 1);
}

TEST(Tls, PrefersTheCipherWithTheCheapestHandshake) {
  const auto server = serve();
  const auto client = trust(*server);
  Talk talk(*client, *server);
  ASSERT_TRUE(talk.up);
  EXPECT_EQ(talk.server->security().cipher, "TLS_AES_128_GCM_SHA256");
}

TEST(Tls, ResumesTls12SessionsManyTimes) {
  const auto server = serve(only_tls12());
  const auto client = trust(*server);
  { Talk first(*client, *server); }
  EXPECT_EQ(client->sessions(), 1U);
  for (int i = 0; i < 3; ++i) {
    Talk next(*client, *server);
    ASSERT_TRUE(next.up);
    EXPECT_TRUE(next.client->security().resumed);
  }
}

TEST(Tls, ResumesOnlyWithTheSamePeer) {
  const auto server = serve();
  const auto client = trust(*server);
  {
    Talk first(*client, *server, "localhost", 443);
    read_tickets(first);
  }
  EXPECT_FALSE(Talk(*client, *server, "localhost", 444).client->security().resumed);
  EXPECT_FALSE(Talk(*client, *server, "127.0.0.1", 443).client->security().resumed);
}

TEST(Tls, SharesSessionsBetweenThreads) {
  const auto server = serve(only_tls12());
  const auto client = trust(*server);
  { Talk first(*client, *server); }
  std::array<std::thread, 4> threads;
  std::atomic<int> resumed = 0;
  for (auto& thread : threads) {
    thread = std::thread([&] {
      for (int i = 0; i < 10; ++i) resumed += Talk(*client, *server).client->security().resumed ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(resumed.load(), 40);
}

TEST(Tls, AStreamOutlivesItsContext) {
  const auto server = serve();
  auto client = trust(*server);
  Talk talk(*client, *server);
  client.reset();
  EXPECT_TRUE(read_tickets(talk));  // stores tickets in a store of its own
  Talk::write(*talk.client, "still here");
  EXPECT_EQ(Talk::read(*talk.server), "still here");
}

TEST(Tls, TicketsOnAnIdleConnectionAreSilence) {
  const auto server = serve();
  const auto client = trust(*server);
  Talk talk(*client, *server);
  ASSERT_TRUE(net::wait_readable(talk.client->fd()));
  EXPECT_TRUE(talk.client->no_data_pending());
  EXPECT_FALSE(talk.client->maybe_readable());
  EXPECT_GT(client->sessions(), 0U);
}

TEST(Tls, DataOnAnIdleConnectionIsNotSilenceAndIsNotLost) {
  const auto server = serve();
  const auto client = trust(*server);
  Talk talk(*client, *server);
  ASSERT_TRUE(read_tickets(talk));
  Talk::write(*talk.server, "unasked");
  net::wait_readable(talk.client->fd());
  EXPECT_FALSE(talk.client->no_data_pending());
  EXPECT_TRUE(talk.client->maybe_readable());
  EXPECT_EQ(Talk::read(*talk.client), "unasked");
}

TEST(Tls, AHalfRecordIsNotSilence) {
  const auto server = serve();
  const auto client = trust(*server);
  Talk talk(*client, *server);
  ASSERT_TRUE(read_tickets(talk));
  // A record header that announces 32 bytes, none of which have arrived.
  const std::string header("\x17\x03\x03\x00\x20", 5);
  ASSERT_EQ(::send(talk.server->fd(), header.data(), 5, 0), 5);
  net::wait_readable(talk.client->fd());
  EXPECT_FALSE(talk.client->no_data_pending());
}

TEST(Tls, AHalfRecordBehindAResponseIsNotSettled) {
  const auto server = serve();
  const auto client = trust(*server);
  Talk talk(*client, *server);
  ASSERT_TRUE(read_tickets(talk));
  EXPECT_TRUE(talk.client->nothing_pending());
  Talk::write(*talk.server, "response");
  ASSERT_EQ(::send(talk.server->fd(), "\x17\x03", 2, 0), 2);  // the beginning of a record
  net::wait_readable(talk.client->fd());
  EXPECT_EQ(Talk::read(*talk.client), "response");
  EXPECT_FALSE(talk.client->maybe_readable());
  EXPECT_FALSE(talk.client->nothing_pending());
  EXPECT_FALSE(talk.client->no_data_pending());
}

TEST(Tls, CloseNotifyIsACleanEnd) {
  const auto server = serve();
  const auto client = trust(*server);
  Talk talk(*client, *server);
  ASSERT_TRUE(read_tickets(talk));
  Talk::write(*talk.server, "last");
  talk.server->shut_write();
  EXPECT_EQ(Talk::read(*talk.client), "last");
  EXPECT_TRUE(talk.client->maybe_readable());  // the close_notify is buffered in user space
  EXPECT_EQ(Talk::read(*talk.client), "");
  EXPECT_EQ(Talk::last_io.io, Io::eof);
  EXPECT_FALSE(talk.client->no_data_pending());
}

TEST(Tls, AFinWithoutCloseNotifyIsAFailure) {
  for (const auto& settings : {ServerSettings{}, only_tls12()}) {
    const auto server = serve(settings);
    const auto client = trust(*server);
    Talk talk(*client, *server);
    ASSERT_TRUE(read_tickets(talk));
    ::shutdown(talk.server->fd(), SHUT_WR);
    EXPECT_EQ(Talk::read(*talk.client), "");
    EXPECT_EQ(Talk::last_io.io, Io::failed);
    EXPECT_EQ(Talk::last_io.detail, "closed without close_notify");
    EXPECT_FALSE(talk.client->no_data_pending());
  }
}

TEST(Tls, AFailureBehindDataKeepsItsReason) {
  for (const auto& settings : {ServerSettings{}, only_tls12()}) {
    const auto server = serve(settings);
    const auto client = trust(*server);
    Talk talk(*client, *server);
    ASSERT_TRUE(read_tickets(talk));
    Talk::write(*talk.server, "last");
    ::shutdown(talk.server->fd(), SHUT_WR);
    EXPECT_EQ(Talk::read(*talk.client), "last");
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(Talk::read(*talk.client), "");
      EXPECT_EQ(Talk::last_io.io, Io::failed);
      EXPECT_EQ(Talk::last_io.detail, "closed without close_notify");
    }
  }
}

// The peer closes with unread input, so that its system sends a reset behind its last data.
TEST(Tls, ReadsWhatThePeerSentBeforeAWriteFailed) {
  for (const auto& settings : {ServerSettings{}, only_tls12()}) {
    const auto server = serve(settings);
    const auto client = trust(*server);
    Talk talk(*client, *server);
    ASSERT_TRUE(read_tickets(talk));
    ASSERT_EQ(Talk::write(*talk.client, "request").bytes, 7U);
    ASSERT_TRUE(net::wait_readable(talk.server->fd()));
    ASSERT_EQ(Talk::write(*talk.server, "early response").bytes, 14U);
    talk.server.reset();
    net::IoResult written;
    for (int i = 0; i < 1000 && written.io != Io::failed; ++i) written = Talk::write(*talk.client, "more");
    ASSERT_EQ(written.io, Io::failed);
    EXPECT_NE(written.error, 0);
    EXPECT_FALSE(talk.client->no_data_pending());
    EXPECT_EQ(Talk::write(*talk.client, "more").io, Io::failed);
    talk.client->on_readiness({.readable = true, .writable = false, .hangup = true});
    EXPECT_EQ(Talk::read(*talk.client), "early response");
    EXPECT_NE((Talk::read(*talk.client), Talk::last_io.io), Io::ok);
    EXPECT_NE(Talk::last_io.io, Io::would_block);
  }
}

TEST(Tls, SaysCloseNotifyWhenItEnds) {
  const auto server = serve();
  const auto client = trust(*server);
  Talk talk(*client, *server);
  read_tickets(talk);
  talk.client.reset();
  EXPECT_EQ(Talk::read(*talk.server), "");
  EXPECT_EQ(Talk::last_io.io, Io::eof);
}

TEST(Tls, SendsHeadAndBodyInOneRecord) {
  const auto server = serve();
  const auto client = trust(*server);
  Talk talk(*client, *server);
  const std::array pieces{net::piece("head\r\n\r\n"), net::piece(""), net::piece("body")};
  EXPECT_EQ(talk.client->write(pieces).bytes, 12U);
  std::array<char, 1000> raw{};
  net::wait_readable(talk.server->fd());
  const auto received = ::recv(talk.server->fd(), raw.data(), raw.size(), MSG_PEEK);
  EXPECT_EQ(received, 5 + 12 + 1 + 16);  // one record: header, bytes, type, tag
  EXPECT_EQ(Talk::read(*talk.server), "head\r\n\r\nbody");
}

TEST(Tls, ReadsManyRecordsAtOnceAndLeavesNoneBehind) {
  const auto server = serve();
  const auto client = trust(*server);
  Talk talk(*client, *server);
  read_tickets(talk);
  for (int i = 0; i < 10; ++i) Talk::write(*talk.server, "0123456789");
  net::wait_readable(talk.client->fd());
  std::string all;
  while (all.size() < 100) {
    all += Talk::read(*talk.client, 25);
    EXPECT_TRUE(all.size() == 100 || Talk::last_io.bytes < 25 || talk.client->maybe_readable());
  }
  EXPECT_EQ(all.size(), 100U);
}

TEST(Tls, PassesMuchDataThroughAFullSocket) {
  const auto server = serve();
  const auto client = trust(*server);
  Talk talk(*client, *server);
  const int small = 16384;
  ::setsockopt(talk.client->fd(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  std::string sent(3U << 20U, '\0');
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7 + i / 251);
  std::string received;
  std::size_t at = 0;
  bool blocked = false;
  std::string buffer(65536, '\0');
  for (int i = 0; i < 1000000 && received.size() < sent.size(); ++i) {
    if (at < sent.size()) {
      const std::array pieces{net::piece(std::string_view(sent).substr(at, 100)),
                              net::piece(std::string_view(sent).substr(std::min(at + 100, sent.size())))};
      const auto result = talk.client->write(pieces);
      ASSERT_NE(result.io, Io::failed) << result.detail;
      blocked |= result.io == Io::would_block;
      at += result.bytes;
      if (result.io == Io::ok && at < sent.size()) continue;
    }
    const auto result = talk.server->read(buffer);
    ASSERT_NE(result.io, Io::failed) << result.detail;
    received.append(buffer, 0, result.bytes);
  }
  EXPECT_TRUE(blocked);
  EXPECT_TRUE(received == sent);
}

TEST(Tls, FailsOnceAndForAll) {
  const auto server = serve();
  const auto client = trust(*server);
  Talk talk(*client, *server);
  read_tickets(talk);
  ASSERT_EQ(::send(talk.server->fd(), "not a record at all", 19, 0), 19);
  Talk::read(*talk.client);
  EXPECT_EQ(Talk::last_io.io, Io::failed);
  std::array<char, 8> buffer{};
  EXPECT_EQ(talk.client->read(buffer).io, Io::failed);
  EXPECT_EQ(Talk::write(*talk.client, "x").io, Io::failed);
  EXPECT_FALSE(talk.client->no_data_pending());
}

}  // namespace
}  // namespace carpool::proxy::tls
