// Unit tests of Proxy-Authorization: which values are credentials, and what they contain.
#include "proxy/http/proxy_authorization.h"

#include <gtest/gtest.h>

#include <string>

namespace carpool::proxy::http {
namespace {

using Form = ProxyAuthorization::Form;

struct Read {
  Form form;
  std::string name, secret;
};

Read read(std::initializer_list<std::string_view> values) {
  Fields fields;
  fields.add("Host", "a");
  for (const std::string_view value : values) fields.add("Proxy-Authorization", value);
  DecodedCredentials decoded;
  const ProxyAuthorization result = read_proxy_authorization(fields, decoded);
  return {result.form, std::string(result.name), std::string(result.secret)};
}

TEST(ProxyAuthorization, IsBasicOrBearer) {
  EXPECT_EQ(read({}).form, Form::absent);
  const Read basic = read({"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="});  // RFC 7617 §2
  EXPECT_EQ(basic.form, Form::basic);
  EXPECT_EQ(basic.name, "Aladdin");
  EXPECT_EQ(basic.secret, "open sesame");
  EXPECT_EQ(read({"bAsIc   dGVzdDoxMjPCow=="}).secret, "123\xC2\xA3");  // RFC 7617 §2.1
  const Read bearer = read({"bearer mF_9.B5f-4.1JqM="});                // RFC 6750 §2.1
  EXPECT_EQ(bearer.form, Form::bearer);
  EXPECT_EQ(bearer.secret, "mF_9.B5f-4.1JqM=");
}

TEST(ProxyAuthorization, SplitsAtTheFirstColon) {
  const Read several = read({"Basic YTpiOmM="});  // a:b:c
  EXPECT_EQ(several.name, "a");
  EXPECT_EQ(several.secret, "b:c");
  const Read empty = read({"Basic Og=="});  // :
  EXPECT_EQ(empty.form, Form::basic);
  EXPECT_EQ(empty.name + empty.secret, "");
}

TEST(ProxyAuthorization, IsMalformedOtherwise) {
  for (const std::string_view value : {"",
                                       "Basic",
                                       "Basic ",
                                       "Basic YQ==",
                                       "Basic YTpi=",
                                       "Basic YTp",
                                       "Basic YT pi",
                                       "Basic YTpi, Bearer x",
                                       "Basic =TpiYTpi",
                                       "Basic YTp-",
                                       "Basic YTpi YTpi",
                                       "Bearer",
                                       "Bearer \xC3\xA4",
                                       "Bearer a\"b",
                                       "Bearer =",
                                       "Digest username=\"a\"",
                                       "Digest YTpi",
                                       "Basic\tYTpi",
                                       "QmFzaWM=",
                                       "Negotiate YTpi",
                                       "Basic ===="}) {
    EXPECT_EQ(read({value}).form, Form::malformed) << value;
  }
  EXPECT_EQ(read({"Basic YTpi", "Basic YTpi"}).form, Form::malformed) << "two lines of the field";
}

TEST(ProxyAuthorization, IsBounded) {
  const std::string most = "Bearer " + std::string(kMaxProxyAuthorization - 7, 'x');
  EXPECT_EQ(read({most}).form, Form::bearer);
  EXPECT_EQ(read({most + 'x'}).form, Form::malformed);
  std::string long_basic = "Basic YTpi";  // a:b
  while (long_basic.size() + 4 <= kMaxProxyAuthorization) long_basic += "YWFh";
  EXPECT_EQ(read({long_basic}).form, Form::basic);
  EXPECT_EQ(read({long_basic + "YWFh"}).form, Form::malformed);
}

}  // namespace
}  // namespace carpool::proxy::http
