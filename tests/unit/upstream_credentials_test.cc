// Unit tests of the fields that are set on an origin's requests: which connections may carry them, and files that
// change.
#include "proxy/upstream/origin/credentials.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>

#include "exec/role.h"
#include "proxy/net/tls/client_context.h"
#include "proxy/upstream/origin/oauth_token.h"
#include "tests/unit/net_support.h"

namespace carpool::proxy {
namespace {

net::ProvenPeer loopback() {
  return *net::ProvenPeer::of(*net::Address::parse("127.0.0.1:1"), nullptr);
}

class CredentialsOfFiles : public ::testing::Test {
 protected:
  CredentialsOfFiles() {
    exec::assume_on_loop();
    path_ = std::filesystem::temp_directory_path() / ("carpool-credentials-" + std::to_string(::getpid()));
    write("one\n");
    settings_.origin = *pool::parse_origin("https://a.test");
    settings_.headers = {{"X-Api-Key", {{}, path_, {}}}, {"X-Fixed", {"text", {}, {}}}};
  }
  ~CredentialsOfFiles() override { std::filesystem::remove(path_); }
  void write(const std::string& text) { std::ofstream(path_) << text; }
  static std::string key(Credentials& credentials, LoopId loop = 0) {
    exec::assume_on_loop();
    return std::string(credentials.in_force(loopback(), loop).fields.get("x-api-key"));
  }

  std::filesystem::path path_;
  config::OriginSettings settings_;
};

TEST(AProof, IsAnAddressOfThisHostOrAVerifiedCertificate) {
  const net::Address here = *net::Address::parse("127.0.0.1:1"), there = *net::Address::parse("192.0.2.1:1");
  EXPECT_TRUE(net::ProvenPeer::of(here, nullptr));
  EXPECT_FALSE(net::ProvenPeer::of(there, nullptr));
  tls::ClientSettings settings;
  settings.ca_file = "/dev/null";
  settings.verify = false;
  const auto unverified = tls::ClientContext::make(settings);
  ASSERT_TRUE(unverified);
  EXPECT_FALSE(net::ProvenPeer::of(there, unverified->get()));
  EXPECT_FALSE(net::ProvenPeer::of(here, unverified->get())) << "TLS says that it verifies, or it proves nothing";
}

TEST_F(CredentialsOfFiles, AreReadAtTheStart) {
  exec::assume_on_loop();
  const auto made = Credentials::make(settings_, 1);
  ASSERT_TRUE(made);
  const http::Fields& fields = (*made)->in_force(loopback(), 0).fields;
  EXPECT_EQ(fields.size(), 2U);
  EXPECT_EQ(fields.get("x-api-key"), "one");
  EXPECT_EQ(fields.get("x-fixed"), "text");
  EXPECT_TRUE((*made)->sets("x-API-key"));
  EXPECT_FALSE((*made)->sets("x-other"));
}

TEST_F(CredentialsOfFiles, NameTheFieldThatCannotBeReadAtTheStart) {
  std::filesystem::remove(path_);
  const auto made = Credentials::make(settings_, 1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.fault().detail, "https://a.test: request.headers.X-Api-Key: " + path_.string() +
                                     " cannot be read: No such file or directory");
}

TEST_F(CredentialsOfFiles, FollowAChangeOnEveryLoop) {
  const auto made = Credentials::make(settings_, 2);
  ASSERT_TRUE(made);
  EXPECT_EQ(key(**made, 0), "one");
  EXPECT_TRUE((*made)->check_files().empty()) << "nothing changed";
  write("two");
  EXPECT_EQ(key(**made, 0), "one") << "until someone looks";
  const auto looks = (*made)->check_files();
  ASSERT_EQ(looks.size(), 1U);
  EXPECT_EQ(looks[0].name, "X-Api-Key");
  EXPECT_EQ(looks[0].fault, "");
  EXPECT_EQ(key(**made, 0), "two");
  EXPECT_EQ(key(**made, 1), "two");
}

// The first reading waits for the rest of a pipe with the former value; the second one finds the new file.
TEST_F(CredentialsOfFiles, HaveTheValueThatWasReadLast) {
  const auto made = Credentials::make(settings_, 1);
  ASSERT_TRUE(made);
  const std::filesystem::path fresh = path_.string() + "-fresh";
  const auto replace_by = [&](const std::string& target) {
    std::filesystem::create_symlink(target, fresh);
    std::filesystem::rename(fresh, path_);
  };
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const Fd read_end(pipe[0]);
  Fd write_end(pipe[1]);
  replace_by("/proc/self/fd/" + std::to_string(read_end.get()));
  auto first = std::async(std::launch::async, [&] { return (*made)->check_files(); });
  ASSERT_EQ(::write(write_end.get(), "old", 3), 3);
  for (int unread = 1; unread != 0;) ASSERT_EQ(::ioctl(read_end.get(), FIONREAD, &unread), 0);
  const net::TemporaryFile file("new");
  replace_by(file.path());
  auto second = std::async(std::launch::async, [&] { return (*made)->check_files(); });
  static_cast<void>(second.wait_for(std::chrono::milliseconds(50)));  // it could overtake the first one
  write_end.reset();
  EXPECT_EQ(first.get().size() + second.get().size(), 2U);
  EXPECT_EQ(key(**made), "new");
}

TEST_F(CredentialsOfFiles, KeepTheLastGoodValueAndReportAFaultOnce) {
  const auto made = Credentials::make(settings_, 1);
  ASSERT_TRUE(made);
  for (const char* bad : {"", "a\nb"}) {
    write(bad);
    const auto looks = (*made)->check_files();
    ASSERT_EQ(looks.size(), 1U) << bad;
    EXPECT_NE(looks[0].fault, "");
    EXPECT_EQ(looks[0].fault.find(bad[0] == 0 ? "?" : bad), std::string::npos);
    EXPECT_EQ((*made)->stale(), 1U);
    EXPECT_TRUE((*made)->check_files().empty()) << "it was reported";
    EXPECT_EQ(key(**made), "one");
  }
  write("one");
  EXPECT_EQ((*made)->check_files().size(), 1U) << "the file is usable again";
  EXPECT_EQ((*made)->stale(), 0U);
  EXPECT_EQ(key(**made), "one");
}

TEST_F(CredentialsOfFiles, StayAsTheyAreIfTheyWouldBeLargerTogetherThanAtTheStart) {
  exec::assume_on_loop();
  const net::TemporaryFile other(std::string(3000, 'a'));
  settings_.headers.push_back({"X-Other", {{}, other.path(), {}}});
  write(std::string(3000, 'a'));
  const auto made = Credentials::make(settings_, 1);
  ASSERT_TRUE(made) << made.fault().detail;
  write(std::string(4500, 'b'));
  std::ofstream(other.path()) << std::string(4500, 'b');
  const auto events = (*made)->check_files();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].fault, path_.string() + ": the fields of request.headers have more than 8KiB together");
  EXPECT_EQ((*made)->stale(), 2U);
  EXPECT_EQ(key(**made), std::string(3000, 'a'));
  EXPECT_TRUE((*made)->check_files().empty()) << "reported once";
  std::ofstream(other.path()) << "short";
  EXPECT_EQ((*made)->check_files().size(), 2U);
  EXPECT_EQ((*made)->stale(), 0U);
  EXPECT_EQ(key(**made), std::string(4500, 'b'));
  std::filesystem::remove(path_);
  std::ofstream(other.path()) << std::string(4500, 'c');
  (*made)->check_files();
  EXPECT_EQ((*made)->in_force(loopback(), 0).fields.get("x-other"), "short") << "the last good value counts";
  write(std::string(4500, 'b'));
  EXPECT_FALSE(Credentials::make(settings_, 1));
}

}  // namespace
}  // namespace carpool::proxy
