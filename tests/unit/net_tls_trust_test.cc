// Unit tests of trust: accepted names, and the exact bytes of the files that were loaded.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/unit/net_tls_support.h"

namespace carpool::proxy::tls {
namespace {

// A certificate issued by its own authority, valid until 2120.
struct Pem {
  const char *certificate, *key;
};
// CN=localhost, no subjectAltName.
constexpr Pem kCommonNameAlone{R"(-----BEGIN CERTIFICATE-----
MIIBgDCCASWgAwIBAgIUICkkS1ADio1bk77NJQjL88deKzAwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAx
MDAwMDAwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASQJlKnR6D2P660FbfImugY+7TvboUuhmvXjqhf2BkACWUj2VgTnCcn
TbCmS1yWDxvQ7SCl0X62HQfb9IQUZJnAo1MwUTAPBgNVHRMBAf8EBTADAQH/MB0G
A1UdDgQWBBRrFlHGQmprPHS2fWHMXznzXbwqWDAfBgNVHSMEGDAWgBRrFlHGQmpr
PHS2fWHMXznzXbwqWDAKBggqhkjOPQQDAgNJADBGAiEA+doF5qBcBv87Ug1SBEfB
dfU9YY932hrqXpF3ropuU+4CIQCSRGe2oksvH5PrmvkHRjz3d8RcIvn0DqzXnRlD
2K4wQA==
-----END CERTIFICATE-----
)",
                               R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgDi3+2yMa38q3c2tO
RNZ/GzBAMdHT60ctXdwVoKWYm/ihRANCAASQJlKnR6D2P660FbfImugY+7TvboUu
hmvXjqhf2BkACWUj2VgTnCcnTbCmS1yWDxvQ7SCl0X62HQfb9IQUZJnA
-----END PRIVATE KEY-----
)"};
// CN=127.0.0.1, subjectAltName DNS:127.0.0.1 and DNS:example.org.
constexpr Pem kAddressAsName{R"(-----BEGIN CERTIFICATE-----
MIIBoTCCAUigAwIBAgIUCIrFNEIG0JkX4qwNmvPUaMyPXKgwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAx
MDAwMDAwWjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAR6RKXvg+3DU63klVHVQ+bbJp8aB0/xEVhY7058hqvuveYJaVb27JfP
WliA9B60hxGgRFJw4bxTwTImhGPLhOklo3YwdDAPBgNVHRMBAf8EBTADAQH/MB0G
A1UdDgQWBBTvLRw2QHU3KGd9bFjLANNPYP8ARjAfBgNVHSMEGDAWgBTvLRw2QHU3
KGd9bFjLANNPYP8ARjAhBgNVHREEGjAYggkxMjcuMC4wLjGCC2V4YW1wbGUub3Jn
MAoGCCqGSM49BAMCA0cAMEQCICel22cO34CTXNpRtZWd6wkXgELoAe9rD4Gf9o2I
fjjPAiA2eMsk42StFtM5dLhQsCiNqRuxCrsupLph87bwLwoHbQ==
-----END CERTIFICATE-----
)",
                             R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgp/TQhIUgFg6nYCmD
kY34Kp0Idb/VnbDyLLiAnnyHa9OhRANCAAR6RKXvg+3DU63klVHVQ+bbJp8aB0/x
EVhY7058hqvuveYJaVb27JfPWliA9B60hxGgRFJw4bxTwTImhGPLhOkl
-----END PRIVATE KEY-----
)"};

struct Server {
  explicit Server(const Pem& pem) : certificate(pem.certificate), key(pem.key) {
    ServerSettings settings;
    settings.cert_file = certificate.path();
    settings.key_file = key.path();
    context = serve(settings);
    ClientSettings trusting;
    trusting.ca_file = certificate.path();
    auto made = ClientContext::make(trusting);
    EXPECT_TRUE(made) << (made ? "" : made.fault().detail);
    client = std::move(*made);
  }
  net::TemporaryFile certificate, key;
  std::unique_ptr<ServerContext> context;
  std::unique_ptr<ClientContext> client;
};

TEST(Tls, RefusesACertificateThatHasItsNameAsACommonNameAlone) {
  Server server(kCommonNameAlone);
  Talk talk(*server.client, *server.context, "localhost");
  ASSERT_TRUE(talk.refusal);
  EXPECT_EQ(talk.refusal->kind, FaultKind::tls_certificate);
  EXPECT_NE(talk.refusal->detail.find("no subjectAltName, wanted localhost"), std::string::npos)
      << talk.refusal->detail;
}

TEST(Tls, RefusesAnAddressThatACertificateHasAsANameAlone) {
  Server server(kAddressAsName);
  EXPECT_FALSE(Talk(*server.client, *server.context, "127.0.0.1").up);
  EXPECT_TRUE(Talk(*server.client, *server.context, "example.org").up);
}

TEST(Tls, ResumesNoSessionBeyondTheCertificateThatItVerified) {
  ServerSettings brief;
  brief.valid_until = std::chrono::seconds(2);
  const auto server = serve(brief);
  const auto client = trust(*server);
  const Instant end = Clock::now() + std::chrono::seconds(10);
  bool up = true;
  for (; up && Clock::now() < end; std::this_thread::yield()) {
    Talk talk(*client, *server);
    up = talk.up;
    if (!up) continue;
    Talk::write(*talk.server, "x");
    Talk::read(*talk.client);  // and the tickets before it
  }
  EXPECT_FALSE(up) << "each resumption brought another ticket";
}

// ---- the bytes that were loaded ----

void write(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::trunc) << text;
}

std::unique_ptr<ClientContext> load(const ClientSettings& settings) {
  auto made = ClientContext::make(settings);
  EXPECT_TRUE(made) << (made ? "" : made.fault().detail);
  return std::move(*made);
}

TEST(AFingerprint, IsOfTheBytesAndNotOfTheFiles) {
  const net::TemporaryFile one(kCommonNameAlone.certificate), same(kCommonNameAlone.certificate);
  const net::TemporaryFile other(kAddressAsName.certificate), key(kAddressAsName.key);
  ClientSettings settings;
  settings.ca_file = one.path();
  const std::uint64_t fingerprint = load(settings)->fingerprint();
  EXPECT_NE(fingerprint, 0U);
  settings.ca_file = same.path();
  EXPECT_EQ(load(settings)->fingerprint(), fingerprint);
  settings.ca_file = other.path();
  EXPECT_NE(load(settings)->fingerprint(), fingerprint);
  settings.ca_file = one.path();
  settings.cert_file = other.path();
  settings.key_file = key.path();
  EXPECT_NE(load(settings)->fingerprint(), fingerprint) << "a client certificate";
}

TEST(AFingerprint, IsOfEverySetting) {
  const net::TemporaryFile authority(kCommonNameAlone.certificate);
  ClientSettings settings;
  settings.ca_file = authority.path();
  const std::uint64_t fingerprint = load(settings)->fingerprint();
  for (const auto change :
       {+[](ClientSettings& s) { s.min_version = "1.3"; }, +[](ClientSettings& s) { s.server_name = "a.test"; },
        +[](ClientSettings& s) { s.verify = false; }, +[](ClientSettings& s) { s.alpn = {"h2"}; }}) {
    ClientSettings changed = settings;
    change(changed);
    EXPECT_NE(load(changed)->fingerprint(), fingerprint);
  }
}

TEST(AFingerprint, DescribesTheLoadedFilesEvenAfterTheyChanged) {
  const net::TemporaryFile authority(kCommonNameAlone.certificate);
  ClientSettings settings;
  settings.ca_file = authority.path();
  const auto before = load(settings);
  const std::uint64_t fingerprint = before->fingerprint();
  auto unchanged = ClientContext::renew(*before);
  ASSERT_TRUE(unchanged);
  EXPECT_EQ(*unchanged, nullptr);
  write(authority.path(), kAddressAsName.certificate);
  EXPECT_EQ(before->fingerprint(), fingerprint);
  auto renewed = ClientContext::renew(*before);
  ASSERT_TRUE(renewed);
  ASSERT_NE(*renewed, nullptr);
  EXPECT_NE((*renewed)->fingerprint(), fingerprint);
  EXPECT_EQ((*renewed)->fingerprint(), load(settings)->fingerprint());
}

// SSL_CERT_FILE and SSL_CERT_DIR locate the system's authorities.
class TheSystemsAuthorities : public ::testing::Test {
 protected:
  TheSystemsAuthorities() : folder_(::testing::TempDir() + "carpool-certs-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_ + "/certs");
    ::setenv("SSL_CERT_FILE", bundle().c_str(), 1);
    ::setenv("SSL_CERT_DIR", (folder_ + "/missing:" + folder_ + "/certs").c_str(), 1);
  }
  ~TheSystemsAuthorities() override {
    ::unsetenv("SSL_CERT_FILE");
    ::unsetenv("SSL_CERT_DIR");
    std::filesystem::remove_all(folder_);
  }
  std::string bundle() const { return folder_ + "/bundle.pem"; }
  std::string hashed() const { return folder_ + "/certs/0123abcd.0"; }
  static bool believes(const ClientContext& context, const Pem& pem, const std::string& host) {
    Server server(pem);
    return Talk(const_cast<ClientContext&>(context), *server.context, host).up;
  }
  const std::string folder_;
};

TEST_F(TheSystemsAuthorities, AreOfTheBundleAndOfTheDirectory) {
  EXPECT_FALSE(believes(*load({}), kAddressAsName, "example.org"));
  write(bundle(), kAddressAsName.certificate);
  EXPECT_TRUE(believes(*load({}), kAddressAsName, "example.org"));
  write(bundle(), "nothing that OpenSSL could read");
  write(hashed(), kAddressAsName.certificate);
  write(folder_ + "/certs/README", "no certificate");
  EXPECT_TRUE(believes(*load({}), kAddressAsName, "example.org"));
}

TEST_F(TheSystemsAuthorities, CountInALikeness) {
  write(bundle(), kAddressAsName.certificate);
  const auto before = load({});
  write(hashed(), kAddressAsName.certificate);
  EXPECT_EQ(load({})->fingerprint(), before->fingerprint()) << "the bundle has it already";
  write(hashed(), kCommonNameAlone.certificate);
  EXPECT_NE(load({})->fingerprint(), before->fingerprint());
  std::filesystem::remove(hashed());
  write(bundle(), std::string(kAddressAsName.certificate) + kCommonNameAlone.certificate);
  auto renewed = ClientContext::renew(*before);
  ASSERT_TRUE(renewed);
  EXPECT_NE(*renewed, nullptr);
}

// NoDescriptors: while it exists, the process can open no file.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST_F(TheSystemsAuthorities, AreNotTakenForNoneWithoutADescriptorToReadThem) {
  write(bundle(), kAddressAsName.certificate);
  const auto before = load({});
  const auto renewed = [&] {
    const NoDescriptors none;
    return ClientContext::renew(*before);
  }();
  ASSERT_FALSE(renewed);
  EXPECT_EQ(renewed.fault().kind, FaultKind::budget);
}

TEST_F(TheSystemsAuthorities, AreNotReplacedByNone) {
  write(bundle(), kAddressAsName.certificate);
  const auto before = load({});
  write(bundle(), "nothing that OpenSSL could read");
  const auto renewed = ClientContext::renew(*before);
  ASSERT_FALSE(renewed);
  EXPECT_NE(renewed.fault().detail.find("none is left"), std::string::npos);
}

}  // namespace
}  // namespace carpool::proxy::tls
