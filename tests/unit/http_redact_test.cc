// Unit tests of redaction: the parts of a target that may be logged.
#include "proxy/http/redact.h"

#include <gtest/gtest.h>

#include <string>

namespace carpool::proxy::http {
namespace {

std::string shown(std::string_view target) {
  std::string scratch;
  return std::string(redacted(target, scratch));
}

TEST(Redact, LeavesAPlainTargetAlone) {
  for (const char* target :
       {"/", "/a/b", "*", "", "/x?", "/x?a=1&b=2", "http://h:80/x?q=%20", "h:443", "/login?next=http://a@b/"}) {
    EXPECT_EQ(shown(target), target);
  }
}

TEST(Redact, HidesValuesWhoseNamesSpeakOfSecrets) {
  EXPECT_EQ(shown("/x?access_token=abc&a=1"), "/x?access_token=***&a=1");
  EXPECT_EQ(shown("/x?a=1&X-Amz-Signature=ff;PASSWORD=hunter2&key="),
            "/x?a=1&X-Amz-Signature=***;PASSWORD=***&key=***");
  EXPECT_EQ(shown("/cb?code=1234&state=x"), "/cb?code=***&state=x");
  EXPECT_EQ(shown("/x?keyboard=us&decode=1&token"), "/x?keyboard=us&decode=1&token");
}

TEST(Redact, HidesKeysInEverySpelling) {
  for (const std::string name :
       {"access_key", "AccessKey", "X-Access-Key", "AWSAccessKeyId", "aws_secret_access_key_id", "subscription-key",
        "appkey", "client_assertion", "api_key_2", "otp", "pin", "sid", "sas", "passphrase", "acc%65ss_key", "%6bey"}) {
    EXPECT_EQ(shown("/x?" + name + "=hunter2&page=7"), "/x?" + name + "=***&page=7");
  }
  const std::string padded = std::string(70, 'x') + "_token";
  EXPECT_EQ(shown("/x?" + padded + "=hunter2"), "/x?" + padded + "=***");
  EXPECT_EQ(shown("/x?keyword=a&spin=b&pinned=c&macro=d&%=e"), "/x?keyword=a&spin=b&pinned=c&macro=d&%=e");
}

TEST(Redact, HidesSecretsInParametersOfThePath) {
  EXPECT_EQ(shown("/cart;jsessionid=AB12/x"), "/cart;jsessionid=***/x");
  EXPECT_EQ(shown("http://h:80/a;v=1;Token=AB?b=1"), "http://h:80/a;v=1;Token=***?b=1");
  EXPECT_EQ(shown("/;sid=;x"), "/;sid=***;x");
  EXPECT_EQ(shown("/a;b/token=1;"), "/a;b/token=1;");
}

TEST(Redact, HidesUserinfo) {
  EXPECT_EQ(shown("http://user:pw@h:80/x"), "http://***@h:80/x");
  EXPECT_EQ(shown("http://a@b@h/"), "http://***@h/");
  EXPECT_EQ(shown("http://h/a@b"), "http://h/a@b");
  EXPECT_EQ(shown("http://u:p@h/x?secret=1"), "http://***@h/x?secret=***");
}

TEST(Redact, HidesUserinfoOfAnAuthorityWithoutAScheme) {
  EXPECT_EQ(shown("user:pw@h:443"), "***@h:443");
  EXPECT_EQ(shown("user:pw@h/x?next=http://y&key=1"), "***@h/x?next=http://y&key=***");
  EXPECT_EQ(shown("http:user:pw@h/x"), "***@h/x");
  EXPECT_EQ(shown("http:/user:pw@h/x"), "http:/***@h/x");
  EXPECT_EQ(shown("http:///user:pw@h/x"), "http:///***@h/x");
  EXPECT_EQ(shown("h:443"), "h:443");
}

TEST(Redact, HidesAPasswordThatASlashCuts) {
  EXPECT_EQ(shown("http://user:p/w@h/x"), "http://***@h/x");
  EXPECT_EQ(shown("http://user:p?w@h/x?key=1"), "http://***@h/x?key=***");
  EXPECT_EQ(shown("user:p/w@h:443"), "***@h:443");
  for (const char* path :
       {"http://h/@scope/a", "http://h:80/@scope/a", "http://h:/@scope/a", "http://[::1]/@scope/a"}) {
    EXPECT_EQ(shown(path), path);
  }
}

TEST(Redact, ShowsALongTargetWholeWhereAsked) {
  const std::string path = "https://h/" + std::string(1500, 'x');
  std::string scratch;
  EXPECT_EQ(redacted(path + "?tenant=a&key=hush", scratch, std::string::npos), path + "?tenant=a&key=***");
  const std::string name(kMaxTarget, 'n');
  EXPECT_EQ(redacted("/?" + name + "token=hush", scratch, std::string::npos), "/?" + name + "token=***");
}

TEST(Redact, RecognizesWhatItMasked) {
  for (const char* masked :
       {"/x?key=***", "https://h/x?a=1&key=***&b=2", "/x?key=***;b=2", "/x;sid=***", "/x;sid=***/y?z=1"})
    EXPECT_TRUE(is_redacted(masked));
  for (const char* plain : {"/x", "/x?", "/key=***", "/x;a=b/key=***", "/x;sid=1/y", "/x?key=****", "/x?key=**",
                            "/x?***=1", "/search?q=***", "/x?key=1&q=***"})
    EXPECT_FALSE(is_redacted(plain));
}

TEST(Redact, CutsWhatIsLong) {
  const std::string cut = shown("/" + std::string(5000, 'x'));
  EXPECT_EQ(cut.size(), kMaxTarget + 3);
  EXPECT_TRUE(cut.ends_with("..."));
}

TEST(Redact, ShowsNothingOfASecretThatBeginsNearTheCut) {
  for (std::size_t pad = kMaxTarget - 40; pad < kMaxTarget + 4; ++pad) {
    const std::string text = shown("/?" + std::string(pad, 'p') + "=1&token=SSSSSSSSSSSSSSSSSSSS");
    EXPECT_EQ(text.find('S'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace carpool::proxy::http
