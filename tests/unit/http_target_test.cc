// Unit tests of request targets: accepted and rejected ones.
#include "proxy/http/forward.h"

#include "tests/unit/http_support.h"

namespace carpool::proxy::http {
namespace {

struct AskedTarget {
  std::string method, target;
  std::vector<std::string> hosts{"a"};
  Version version = Version::http11;
};

RequestHead head_of(const AskedTarget& asked) {
  RequestHead head;
  head.method = asked.method;
  head.target = asked.target;
  head.version = asked.version;
  for (const std::string& host : asked.hosts) head.fields.add("Host", host);
  return head;
}

void refused_target(const AskedTarget& asked) {
  const RequestHead head = head_of(asked);
  const Result<Target> target = parse_target(head);
  ASSERT_FALSE(target) << asked.method << " " << asked.target << " " << (asked.hosts.empty() ? "-" : asked.hosts[0]);
  EXPECT_EQ(target.fault().kind, FaultKind::malformed_request);
  EXPECT_EQ(target.fault().side, Side::client);
}

void leads(const AskedTarget& asked, TargetForm form, pool::Scheme scheme, std::string_view authority,
           std::string_view path) {
  const RequestHead head = head_of(asked);
  const Result<Target> target = parse_target(head);
  ASSERT_TRUE(target) << asked.target << ": " << target.fault().detail;
  EXPECT_EQ(target->form, form);
  EXPECT_EQ(target->scheme, scheme);
  EXPECT_EQ(target->authority, authority);
  EXPECT_EQ(target->path, path);
}

TEST(ParseTarget, KnowsTheFourForms) {
  using enum TargetForm;
  leads({"GET", "/x?q=1"}, origin, pool::Scheme::http, "a", "/x?q=1");
  leads({"GET", "//x"}, origin, pool::Scheme::http, "a", "//x");
  leads({"GET", "http://h:80/x?q"}, absolute, pool::Scheme::http, "h:80", "/x?q");
  leads({"GET", "HTTPS://H/x"}, absolute, pool::Scheme::https, "H", "/x");
  leads({"GET", "ws://h:81/x"}, absolute, pool::Scheme::http, "h:81", "/x");
  leads({"GET", "WSS://h/x"}, absolute, pool::Scheme::https, "h", "/x");
  leads({"GET", "http://[::1]:80/x"}, absolute, pool::Scheme::http, "[::1]:80", "/x");
  leads({"CONNECT", "h:443"}, authority, pool::Scheme::tcp, "h:443", "h:443");
  leads({"CONNECT", "[::1]:443"}, authority, pool::Scheme::tcp, "[::1]:443", "[::1]:443");
  leads({"OPTIONS", "*"}, asterisk, pool::Scheme::http, "a", "*");
}

TEST(ParseTarget, FillsAnEmptyPath) {
  using enum TargetForm;
  leads({"GET", "http://h"}, absolute, pool::Scheme::http, "h", "/");
  leads({"OPTIONS", "http://h"}, absolute, pool::Scheme::http, "h", "*");
  leads({"OPTIONS", "http://h/"}, absolute, pool::Scheme::http, "h", "/");
  leads({"GET", "http://h?q=/"}, absolute, pool::Scheme::http, "h", "?q=/");
}

TEST(ParseTarget, RefusesTargetsThatLeadNowhere) {
  for (const char* target : {"x",
                             "a:80",
                             "http:",
                             "http:/x",
                             "http://",
                             "http:///t",
                             "http://?q",
                             "http://:80/",
                             "ftp://h/x",
                             "wsx://h/x",
                             "://h/x",
                             "http://u:p@h/t",
                             "http://u@h/t",
                             "http://h:80x/",
                             "http://h:65536/",
                             "http://h:-1/",
                             "http://[::1/",
                             "http://[::1]x/",
                             "http://[::g]/",
                             "http://[]/",
                             "http://h h/",
                             "http://a,b/",
                             "http://h\\@b/",
                             "http://h:80:90/",
                             "/x#f",
                             "http://h/x#f",
                             "*x",
                             ""}) {
    refused_target({"GET", target});
  }
  refused_target({"GET", "*"});
  refused_target({"GET", "http://h@"});
  refused_target({"GET", std::string("http://[") + std::string(100, ':') + "]/"});
}

TEST(ParseTarget, RefusesConnectToAnythingButAHostAndPort) {
  for (const char* target :
       {"/x", "h", "h:", "http://h:80/", "h:80/", "*", ":80", "u@h:80", "h:80x", "[::1]", "[::1]:", "::1:80"}) {
    refused_target({"CONNECT", target});
  }
}

TEST(ParseTarget, WantsExactlyOneHostThatIsAHost) {
  refused_target({"GET", "/", {}});
  refused_target({"GET", "http://h/", {}});
  refused_target({"GET", "/", {"a", "a"}});
  for (const char* host :
       {"a b", "u@a", "127.0.0.1:80x", "[::1", "a/b", "a,b", "a:80:80", ":80", "a?b", "a#b", "[::1]80", "a\"b",
        "a:99999999999999999999", "%", "a%4", "a%zz", "a%4z", "a%%41", "a%2:80"}) {
    refused_target({"GET", "/", {host}});
    refused_target({"GET", "http://h/", {host}});
  }
  using enum TargetForm;
  for (const char* host : {"a", "A.b-c_d.e.", "a:80", "a:", "127.0.0.1:8080", "[::1]", "[::ffff:1.2.3.4]:80", "%61",
                           "%4a%4B:80", "\xC3\xA4"}) {
    leads({"GET", "/", {host}}, origin, pool::Scheme::http, host, "/");
  }
}

TEST(ParseTarget, IgnoresAnEmptyHostOfATargetThatNamesItsHost) {
  using enum TargetForm;
  leads({"GET", "http://h/x", {""}}, absolute, pool::Scheme::http, "h", "/x");
  leads({"CONNECT", "h:443", {""}}, authority, pool::Scheme::tcp, "h:443", "h:443");
  refused_target({"GET", "/", {""}});
  refused_target({"OPTIONS", "*", {""}});
  refused_target({"GET", "/", {""}, Version::http10});
  refused_target({"GET", "http://h/", {"", ""}});
  refused_target({"GET", "http:///x", {""}});
}

TEST(ParseTarget, LetsHttp10GoWithoutHost) {
  using enum TargetForm;
  leads({"GET", "/", {}, Version::http10}, origin, pool::Scheme::http, "", "/");
  leads({"GET", "http://h/", {}, Version::http10}, absolute, pool::Scheme::http, "h", "/");
  refused_target({"GET", "/", {"a", "b"}, Version::http10});
}

TEST(ATargetOfHttp2, HasNoFragmentAndOneHostAtMost) {
  const auto parsed = [](std::string_view target, int hosts) {
    RequestHead head;
    head.version = Version::http2;
    head.method = "GET";
    head.scheme = "http";
    head.authority = "a";
    head.target = target;
    for (int n = 0; n < hosts; ++n) head.fields.add("host", "a");
    return static_cast<bool>(parse_target(head));
  };
  EXPECT_TRUE(parsed("/x?y", 1));
  EXPECT_FALSE(parsed("/x#y", 1));
  EXPECT_FALSE(parsed("/x?y#z", 0));
  EXPECT_FALSE(parsed("/x", 2));
}

TEST(ATargetOfHttp2, HasAHostThatNamesTheSameServerAsItsAuthority) {
  const auto agree = [](std::string_view scheme, std::string_view authority, std::string_view host) {
    RequestHead head;
    head.version = Version::http2;
    head.method = "GET";
    head.scheme = scheme;
    head.authority = authority;
    head.target = "/";
    head.fields.add("host", host);
    return static_cast<bool>(parse_target(head));
  };
  for (const std::string_view host : {"a", "A", "a:", "a:80"}) {
    for (const std::string_view authority : {"a", "a:", "a:80"}) EXPECT_TRUE(agree("http", authority, host)) << host;
  }
  EXPECT_TRUE(agree("https", "[::1]:", "[::1]:443"));
  EXPECT_TRUE(agree("https", "[::1]", "[0:0::0001]:0443"));
  EXPECT_TRUE(agree("http", "a.test", "%61.test.:080"));
  EXPECT_FALSE(agree("http", "a.test", "%61%2etest%00"));
  EXPECT_FALSE(agree("https", "a:", "a:80"));
  EXPECT_FALSE(agree("http", "a:", "b"));
  EXPECT_FALSE(agree("http", "a:", "a:81"));
  EXPECT_FALSE(agree("http", "a", "a::80")) << "one port at most";
}

}  // namespace
}  // namespace carpool::proxy::http
