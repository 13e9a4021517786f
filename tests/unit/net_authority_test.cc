#include "proxy/net/tls/authority.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "proxy/net/tls/authority_files.h"
#include "proxy/net/tls/certificate.h"
#include "proxy/net/tls/certificate_end.h"
#include "proxy/net/tls/trust_bundle.h"
#include "tests/unit/net_tls_support.h"

namespace carpool::proxy::tls {
namespace {

using std::chrono::hours;

class AuthorityFiles : public ::testing::Test {
 protected:
  AuthorityFiles() {
    std::string name = ::testing::TempDir() + "carpool-ca-XXXXXX";
    dir = ::mkdtemp(name.data());
  }
  ~AuthorityFiles() override { std::filesystem::remove_all(dir); }

  void create(const std::vector<std::string>& hosts, hours life = hours(48)) {
    const Status made = create_authority(dir, hosts, life);
    ASSERT_TRUE(made) << made.fault().detail;
  }
  std::unique_ptr<Authority> load() {
    auto made = Authority::load(dir);
    EXPECT_TRUE(made) << (made ? "" : made.fault().detail);
    return made ? std::move(*made) : nullptr;
  }
  std::string refusal() {
    auto made = Authority::load(dir);
    return made ? "" : made.fault().detail;
  }
  std::unique_ptr<ClientContext> trusting() {
    ClientSettings settings;
    settings.ca_file = dir + "/ca.pem";
    settings.alpn = {"h2", "http/1.1"};
    auto made = ClientContext::make(settings);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  std::unique_ptr<ServerContext> mint(const Authority& authority, const std::string& host) {
    auto made = authority.mint(host, {"h2", "http/1.1"});
    EXPECT_TRUE(made) << (made ? "" : made.fault().detail);
    return std::move(*made);
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(dir + "/" + name) << text; }

  std::string dir;
};

TEST_F(AuthorityFiles, One_that_ends_after_the_last_nanosecond_of_the_clock_issues_certificates) {
  create({"api.example.com"}, hours(24) * 365 * 1000);
  const auto authority = load();
  EXPECT_GT(authority->expires(), std::chrono::system_clock::now() + hours(24) * 365 * 200);
  const auto client = trusting();
  const auto server = mint(*authority, "api.example.com");
  EXPECT_TRUE(Talk(*client, *server, "api.example.com").up);
  const auto end = certificate_end(dir + "/ca.pem");
  ASSERT_TRUE(end);
  EXPECT_GT(*end, std::chrono::sys_days(std::chrono::year(3000) / 1 / 1));
}

TEST_F(AuthorityFiles, A_minted_certificate_is_believed_by_a_client_that_trusts_the_authority) {
  create({"api.example.com", "10.0.0.7", "fd00::7"});
  const auto authority = load();
  const auto client = trusting();
  for (const char* host : {"api.example.com", "10.0.0.7", "fd00::7"}) {
    const auto server = mint(*authority, host);
    const Talk talk(*client, *server, host);
    EXPECT_TRUE(talk.up) << host << ": " << (talk.refusal ? talk.refusal->detail : "");
    EXPECT_EQ(talk.server->security().alpn, "h2");
    EXPECT_EQ(talk.server->security().version, "TLSv1.3");
  }
}

TEST_F(AuthorityFiles, A_second_connection_resumes_the_session) {
  create({"api.example.com"});
  const auto client = trusting();
  const auto server = mint(*load(), "api.example.com");
  Talk first(*client, *server, "api.example.com");
  Talk::write(*first.server, "x");
  Talk::read(*first.client, 1);
  Talk second(*client, *server, "api.example.com");
  EXPECT_TRUE(second.client->security().resumed);
}

TEST_F(AuthorityFiles, A_certificate_is_for_exactly_its_host) {
  create({"example.com"});
  const auto client = trusting();
  const auto server = mint(*load(), "a.example.com");
  const Talk talk(*client, *server, "b.example.com");
  EXPECT_TRUE(talk.refusal);
}

TEST_F(AuthorityFiles, A_host_outside_the_name_constraints_gets_no_certificate) {
  create({"api.example.com"});
  const auto authority = load();
  EXPECT_TRUE(authority->covers("api.example.com"));
  for (const char* host : {"example.com", "other.test", "127.0.0.1", "::1", "badapi.example.com"}) {
    EXPECT_FALSE(authority->covers(host)) << host;
    const auto made = authority->mint(host, {"h2"});
    ASSERT_FALSE(made) << host;
    EXPECT_NE(made.fault().detail.find("outside the name constraints"), std::string::npos) << made.fault().detail;
  }
}

TEST_F(AuthorityFiles, An_authority_of_addresses_signs_no_name_and_no_other_address) {
  create({"10.0.0.7"});
  const auto authority = load();
  EXPECT_TRUE(authority->covers("10.0.0.7"));
  for (const char* host : {"10.0.0.8", "fd00::7", "api.example.com"}) EXPECT_FALSE(authority->covers(host)) << host;
}

TEST_F(AuthorityFiles, A_name_longer_than_a_common_name_gets_a_certificate) {
  const std::string host = std::string(60, 'a') + "." + std::string(60, 'b') + ".example";
  create({host});
  EXPECT_TRUE(load()->covers(host));
}

TEST_F(AuthorityFiles, A_certificate_lives_a_day_and_never_longer_than_the_authority) {
  create({"api.example.com"}, hours(48));
  const auto now = std::chrono::system_clock::now();
  const auto life = mint(*load(), "api.example.com")->expires() - now;
  EXPECT_GT(life, hours(24) - std::chrono::seconds(5));
  EXPECT_LT(life, hours(24) + std::chrono::minutes(1));
  create({"api.example.com"}, hours(2));
  const auto authority = load();
  EXPECT_LE(mint(*authority, "api.example.com")->expires(), authority->expires());
}

TEST_F(AuthorityFiles, A_certificate_that_is_asked_for_longer_ends_with_the_authority) {
  using std::chrono::seconds;
  const Certified authority = make_authority({"api.example.com"}, seconds(60));
  for (const seconds asked : {seconds(61), seconds(3600)}) {
    const Certified leaf = make_leaf("api.example.com", asked, authority.certificate.get(), authority.key.get());
    ASSERT_TRUE(leaf.certificate);
    EXPECT_EQ(end_of(leaf.certificate.get()), end_of(authority.certificate.get()));
  }
}

TEST_F(AuthorityFiles, The_key_belongs_to_its_owner_alone) {
  create({"api.example.com"});
  struct stat status {};
  ASSERT_EQ(::stat((dir + "/ca.key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
}

TEST_F(AuthorityFiles, A_key_that_others_may_read_is_refused) {
  create({"api.example.com"});
  for (const unsigned mode : {0644U, 0604U, 0620U, 0601U}) {
    ::chmod((dir + "/ca.key").c_str(), mode);
    EXPECT_NE(refusal().find("ca.key: its mode is 0"), std::string::npos) << refusal();
  }
  ::chmod((dir + "/ca.key").c_str(), 0440);
  EXPECT_EQ(refusal(), "");
}

TEST_F(AuthorityFiles, A_refusal_names_the_file_and_the_reason) {
  EXPECT_EQ(refusal(), dir + "/ca.pem: No such file or directory");
  create({"api.example.com"});
  ::unlink((dir + "/ca.key").c_str());
  EXPECT_EQ(refusal(), dir + "/ca.key: No such file or directory");
  write("ca.key", "nonsense");
  ::chmod((dir + "/ca.key").c_str(), 0600);
  EXPECT_TRUE(refusal().starts_with(dir + "/ca.key: not a private key")) << refusal();
  write("ca.pem", "nonsense");
  EXPECT_EQ(refusal(), dir + "/ca.pem: contains no certificate in PEM");
}

TEST_F(AuthorityFiles, A_chain_that_breaks_off_is_refused) {
  create({"api.example.com"});
  const std::string own = load()->certificate_pem(), other = serve()->certificate_pem();
  write("ca.pem", own + other);
  EXPECT_EQ(refusal(), "");
  for (const std::size_t left : {other.size() / 2, other.size() - 10}) {
    write("ca.pem", own + other.substr(0, left));
    EXPECT_EQ(refusal(), dir + "/ca.pem: contains a certificate that cannot be read");
    const auto bundle = write_trust_bundle(dir, dir);
    ASSERT_FALSE(bundle);
    EXPECT_EQ(bundle.fault().detail, dir + "/ca.pem: contains a certificate that cannot be read");
  }
}

TEST_F(AuthorityFiles, The_copy_for_applications_holds_certificates_alone) {
  create({"api.example.com"});
  const std::string own = load()->certificate_pem();
  write("ca.pem", pem_of(Identity().made.key.get()) + own);
  const std::string into = dir + "/trust";
  std::filesystem::create_directory(into);
  ASSERT_TRUE(write_trust_bundle(dir, into));
  std::stringstream copy;
  copy << std::ifstream(into + "/ca.pem").rdbuf();
  EXPECT_EQ(copy.str(), own);
}

TEST_F(AuthorityFiles, A_key_of_another_certificate_is_refused) {
  create({"api.example.com"});
  std::filesystem::rename(dir + "/ca.pem", dir + "/old.pem");
  create({"api.example.com"});
  std::filesystem::rename(dir + "/old.pem", dir + "/ca.pem");
  EXPECT_EQ(refusal(), dir + "/ca.key: is not the key of " + dir + "/ca.pem");
}

TEST_F(AuthorityFiles, An_expired_authority_is_refused) {
  create({"api.example.com"}, hours(0));
  EXPECT_EQ(refusal(), dir + "/ca.pem: has expired");
}

TEST_F(AuthorityFiles, An_authority_without_name_constraints_is_refused) {
  create({"api.example.com"});
  write("ca.pem", serve()->certificate_pem());
  EXPECT_EQ(refusal(), dir + "/ca.pem: has no name constraints, so it could sign for every host");
}

TEST_F(AuthorityFiles, The_same_files_have_the_same_fingerprint) {
  create({"api.example.com"});
  const auto first = load()->fingerprint();
  EXPECT_EQ(load()->fingerprint(), first);
  create({"api.example.com"});
  EXPECT_NE(load()->fingerprint(), first);
}

TEST(Authority, Signs_with_a_key_that_hashes_by_itself) {
  const Certified issuer = make_authority({"example.com"}, hours(24));
  for (const char* const kind : {"ED25519", "ED448"}) {
    const KeyPtr key(EVP_PKEY_Q_keygen(nullptr, nullptr, kind));
    const Certified leaf = make_leaf("api.example.com", hours(1), issuer.certificate.get(), key.get());
    ASSERT_TRUE(leaf.certificate) << kind;
    EXPECT_EQ(X509_verify(leaf.certificate.get(), key.get()), 1) << kind;
  }
}

TEST(Authority, A_folder_that_does_not_exist_is_named) {
  const Status made = create_authority("/nonexistent/ca", {"api.example.com"}, hours(1));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.fault().detail, "/nonexistent/ca/ca.key.new: No such file or directory");
}

}  // namespace
}  // namespace carpool::proxy::tls
