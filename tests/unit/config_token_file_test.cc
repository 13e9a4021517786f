// Unit tests of the token's file: which of its bytes are the token.
#include "proxy/config/token_file.h"

#include <cstdlib>
#include <fstream>

#include "tests/unit/config_helpers.h"

namespace carpool::proxy::config {
namespace {

class TokenFile : public ::testing::Test {
 protected:
  std::string written(std::string_view content) const {
    std::ofstream(path_, std::ios::binary) << content;
    return path_;
  }
  const std::string path_ = ::testing::TempDir() + "token_file_test";
};

TEST_F(TokenFile, HoldsTheTokenInItsFirstLine) {
  for (const char* content : {"secret", "secret\n", "secret\r\n", "secret\nsecond\n", "secret\r\nsecond\r\n"}) {
    const Result<std::string> token = read_token_file(written(content));
    ASSERT_TRUE(token) << content;
    EXPECT_EQ(*token, "secret") << content;
  }
}

TEST_F(TokenFile, HoldsATokenThatNeedNotBeAscii) {
  for (const char* content : {"a b", "a\tb", "p\xC3\xA4ss", "\"quoted\""}) {
    const Result<std::string> token = read_token_file(written(content));
    ASSERT_TRUE(token) << content;
    EXPECT_EQ(*token, content);
  }
}

// No request could have such a token: a field's value has neither.
TEST_F(TokenFile, IsRefusedWithAControlCharacterOrWhiteSpaceAroundTheToken) {
  for (const std::string& content :
       {std::string("secret "), std::string(" secret"), std::string("secret\t\n"), std::string("se\x01t"),
        std::string("se\0t", 4), std::string("secret\r\r\n"), std::string("secret\x7F")}) {
    const Result<std::string> token = read_token_file(written(content));
    ASSERT_FALSE(token) << content;
    EXPECT_EQ(token.fault().detail, path_ + ": the first line has a control character or white space around the token");
  }
}

TEST_F(TokenFile, IsRefusedWithoutOne) {
  for (const char* content : {"", "\n", "\r\n", "\nsecret", "\r\nsecret"}) {
    const Result<std::string> token = read_token_file(written(content));
    ASSERT_FALSE(token) << content;
    EXPECT_EQ(token.fault().detail, path_ + ": the first line has no token");
  }
  EXPECT_EQ(read_token_file(path_ + ".none").fault().detail, path_ + ".none: No such file or directory");
}

}  // namespace
}  // namespace carpool::proxy::config
