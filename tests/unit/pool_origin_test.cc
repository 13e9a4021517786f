// Unit tests of origin equality, as a table: spellings on one row are one origin, rows are distinct, and invalid
// spellings are rejected.
#include "pool/origin.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace carpool::pool {
namespace {

struct Row {
  Scheme scheme;
  std::string label;
  std::vector<std::string_view> spellings;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table{
      {Scheme::http,
       "http://h",
       {"h", "H", "h:80", "h:", "h.", "h.:80", "H.:0080", "%68", "%48:80", "h:00000000000080"}},
      {Scheme::http, "http://h:8080", {"h:8080", "H:08080", "h.:8080"}},
      {Scheme::https, "https://h", {"h", "h:443", "h:", "%68:443"}},
      {Scheme::https, "https://h:80", {"h:80"}},
      {Scheme::http, "http://h:443", {"h:443"}},
      {Scheme::tcp, "tcp://h:443", {"h:443", "H.:443"}},
      {Scheme::tcp, "tcp://h:80", {"h:80"}},
      {Scheme::http, "http://api.example.com", {"api.example.com", "API.Example.COM.", "api%2eexample%2Ecom"}},
      {Scheme::http, "http://my_service", {"my_service", "MY_SERVICE", "my%5Fservice"}},
      {Scheme::http, "http://-odd-.r3---sn.x", {"-odd-.r3---sn.x"}},
      {Scheme::http, "http://1a", {"1a", "1A"}},
      {Scheme::http, "http://127.0.0.1.nip.io", {"127.0.0.1.nip.io"}},
      {Scheme::http,
       "http://127.0.0.1",
       {"127.0.0.1", "127.1", "127.0.1", "0x7f.1", "0X7F.0.0.1", "2130706433", "017700000001", "0x7f000001",
        "127.0.0.1.", "0177.0.0.01", "127.0.0.0x1", "%31%32%37.1",
        "\xEF\xBC\x91\xEF\xBC\x92\xEF\xBC\x97.0.0.1",  // full-width 127
        "127\xE3\x80\x82"
        "0\xE3\x80\x82"
        "0\xE3\x80\x82"
        "1"}},  // ideographic stops
      {Scheme::http, "http://0.0.0.0", {"0.0.0.0", "0", "0x", "00", "0.0"}},
      {Scheme::http, "http://255.255.255.255", {"255.255.255.255", "4294967295", "0xffffffff", "255.16777215"}},
      {Scheme::http, "http://169.254.169.254:81", {"169.254.169.254:81", "169.16689662:81", "0xA9FEA9FE:81"}},
      {Scheme::http,
       "http://[::1]",
       {"[::1]", "[0:0:0:0:0:0:0:1]", "[::1]:", "[::1]:80", "[0000::0001]", "[::0.0.0.1]"}},
      {Scheme::http, "http://[2001:db8::a]:81", {"[2001:db8::a]:81", "[2001:DB8::A]:81", "[2001:0db8:0:0::000A]:81"}},
      {Scheme::http, "http://[2001:db8::1:0:0:1]", {"[2001:db8::1:0:0:1]", "[2001:db8:0:0:1::1]"}},
      {Scheme::http,
       "http://[::ffff:127.0.0.1]",
       {"[::ffff:127.0.0.1]", "[::FFFF:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]"}},
      {Scheme::http,
       "http://xn--bcher-kva.example",
       {"b\xC3\xBC"
        "cher.example",
        "B\xC3\x9C"
        "CHER.example",
        "xn--bcher-kva.example", "XN--BCHER-KVA.Example.", "b%C3%BCcher.example",
        "bu\xCC\x88"
        "cher.example",
        "b\xC3\xBC"
        "cher\xE3\x80\x82"
        "example"}},
      // Non-transitional: sharp s stays itself.
      {Scheme::http,
       "http://xn--strae-oqa.de",
       {"stra\xC3\x9F"
        "e.de",
        "xn--strae-oqa.de"}},
      {Scheme::http, "http://strasse.de", {"strasse.de"}},
      {Scheme::http,
       "http://localhost",
       {"localhost", "LocalHost",
        "\xE2\x93\x9B"
        "ocalhost",
        "local\xC2\xAD"
        "host"}},
  };
  return table;
}

TEST(OriginTable, EverySpellingOfARowIsTheSameOrigin) {
  for (const Row& row : rows()) {
    for (const std::string_view spelling : row.spellings) {
      auto origin = canonical_origin(row.scheme, spelling);
      ASSERT_TRUE(origin) << spelling << ": " << origin.fault().detail;
      EXPECT_EQ(origin->label(), row.label) << spelling;
      EXPECT_EQ(*origin, *canonical_origin(row.scheme, row.spellings.front())) << spelling;
    }
  }
}

TEST(OriginTable, NoTwoRowsAreTheSameOrigin) {
  std::unordered_map<Origin, std::string> seen;
  for (const Row& row : rows()) {
    auto origin = canonical_origin(row.scheme, row.spellings.front());
    ASSERT_TRUE(origin);
    EXPECT_TRUE(seen.emplace(*origin, row.label).second) << row.label << " = " << seen[*origin];
  }
}

TEST(OriginTable, ALabelReadsBackAsItsOrigin) {
  for (const Row& row : rows()) {
    auto origin = parse_origin(row.label);
    ASSERT_TRUE(origin) << row.label;
    EXPECT_EQ(origin->label(), row.label);
  }
}

struct Refused {
  std::string authority;
  std::string_view why;
};

TEST(Origin, IsTheSamePlaceUnderAnyTlsIdentity) {
  const Origin origin{Scheme::https, "h", 443};
  EXPECT_TRUE((Origin{Scheme::https, "h", 443, 1}.same_place(origin)));
  EXPECT_FALSE((Origin{Scheme::http, "h", 443}.same_place(origin)));
  EXPECT_FALSE((Origin{Scheme::https, "i", 443}.same_place(origin)));
  EXPECT_FALSE((Origin{Scheme::https, "h", 444}.same_place(origin)));
}

TEST(Origin, MasksUserinfoInItsError) {
  EXPECT_EQ(canonical_origin(Scheme::tcp, "u:secret@h:1").fault().detail,
            "userinfo before the host is not allowed: `***@h:1`");
  EXPECT_EQ(parse_origin("http://u:sec@ret/@h/x").fault().detail, "an origin must not have a path: `***@h/x`");
}

TEST(Origin, MasksAQueryInItsError) {
  EXPECT_EQ(parse_origin("https://h/x?token=secret").fault().detail,
            "an origin must not have a path: `https://h/x?***`");
  EXPECT_EQ(parse_origin("https://u:sec?ret@h?token=sec?ret#x").fault().detail,
            "an origin must not have a path: `***@h?***`");
}

TEST(Origin, RejectsAmbiguousText) {
  const std::vector<Refused> table{
      {"", "empty"},
      {":80", "empty"},
      {".", "empty"},
      {"a..b", "empty label"},
      {".a", "empty label"},
      {"a..", "empty label"},
      {"h:0", "port is 0"},
      {"h:00", "port is 0"},
      {"h:65536", "greater"},
      {"h:99999999999999999999", "greater"},
      {"h:80x", "not a number"},
      {"h:+80", "not a number"},
      {"h:-1", "not a number"},
      {"h: 80", "not a number"},
      {"h:80:80", "more than one colon"},
      {"::1", "more than one colon"},
      {"u@h", "not allowed in a name"},
      {"u:p@h", "userinfo"},
      {"u:p@h:80", "userinfo"},
      {"u%40h", "not allowed in a name"},
      {"a b", "not allowed in a name"},
      {" a", "not allowed in a name"},
      {"a ", "not allowed in a name"},
      {"a\tb", "not allowed in a name"},
      {"a%20b", "not allowed in a name"},
      {"a/b", "not allowed in a name"},
      {"a%2Fb", "not allowed in a name"},
      {"a\\b", "not allowed in a name"},
      {"a?b", "not allowed in a name"},
      {"a#b", "not allowed in a name"},
      {"a\"b", "not allowed in a name"},
      {"a,b", "not allowed in a name"},
      {std::string("a\0b", 3), "not allowed in a name"},
      {"a%00b", "not allowed in a name"},
      {"a\x7f", "not allowed in a name"},
      {"%2568", "not allowed in a name"},
      {"a%3A80", "not allowed in a name"},
      {"a%", "broken percent"},
      {"a%4", "broken percent"},
      {"a%zz", "broken percent"},
      {"%", "broken percent"},
      {"\xC3", "international"},
      {"%C3%28", "international"},
      {std::string("\xC3\xBC\0a", 4), "international"},
      {"256.0.0.1", "not an IPv4 address"},
      {"1.2.3.4.5", "not an IPv4 address"},
      {"1.2.3.256", "not an IPv4 address"},
      {"09", "not an IPv4 address"},
      {"1.2.3.08", "not an IPv4 address"},
      {"4294967296", "not an IPv4 address"},
      {"0x100000000", "not an IPv4 address"},
      {"a.1", "not an IPv4 address"},
      {"foo.0x1f", "not an IPv4 address"},
      {"1.65536.1", "not an IPv4 address"},
      {"127.0.0.1..", "empty label"},
      {"255.16777216", "not an IPv4 address"},
      {"[::1", "closing bracket"},
      {"[", "closing bracket"},
      {"[]", "not an IPv6 address"},
      {"[::1]x", "follows"},
      {"[::1]80", "follows"},
      {"[::1]:0", "port is 0"},
      {"[::1]:a", "not a number"},
      {"[fe80::1%25eth0]", "not an IPv6 address"},
      {"[fe80::1%eth0]", "not an IPv6 address"},
      {"[127.0.0.1]", "not an IPv6 address"},
      {"[v1.a]", "not an IPv6 address"},
      {"[::g]", "not an IPv6 address"},
      {"[h]", "not an IPv6 address"},
      {"]", "not allowed in a name"},
      {std::string("[::1\0]", 6), "not an IPv6 address"},
      {std::string(64, 'a'), "label longer"},
      {"u@[::1]", "more than one colon"},
  };
  for (const Refused& row : table) {
    auto origin = canonical_origin(Scheme::http, row.authority);
    ASSERT_FALSE(origin) << row.authority << " became " << origin->label();
    EXPECT_EQ(origin.fault().kind, FaultKind::malformed_request);
    EXPECT_EQ(origin.fault().side, Side::client);
    EXPECT_NE(origin.fault().detail.find(row.why), std::string::npos) << row.authority << ": " << origin.fault().detail;
  }
}

TEST(Origin, RefusesNamesThatDnsCannotCarry) {
  std::string name;
  for (int i = 0; i < 63; ++i) name += "abc.";
  EXPECT_TRUE(canonical_origin(Scheme::http, name + "a"));
  EXPECT_TRUE(canonical_origin(Scheme::http, name + "a."));
  EXPECT_FALSE(canonical_origin(Scheme::http, name + "ab"));
  EXPECT_FALSE(canonical_origin(Scheme::http, std::string(100'000, 'a')));
  EXPECT_FALSE(canonical_origin(Scheme::http, std::string(100'000, '%')));
  EXPECT_LT(canonical_origin(Scheme::http, std::string(100'000, 'a')).fault().detail.size(), 200U);
}

TEST(Origin, TcpNeedsAPortAndAlwaysShowsIt) {
  EXPECT_FALSE(canonical_origin(Scheme::tcp, "h"));
  EXPECT_FALSE(canonical_origin(Scheme::tcp, "h:"));
  EXPECT_EQ(canonical_origin(Scheme::tcp, "h:80")->label(), "tcp://h:80");
}

TEST(Origin, ParsesUrisWithNothingBehindTheAuthority) {
  EXPECT_EQ(parse_origin("HTTPS://API.example.com:443/")->label(), "https://api.example.com");
  EXPECT_EQ(parse_origin("http://[::1]:8080")->label(), "http://[::1]:8080");
  for (const std::string_view wrong :
       {"", "h", "h:80", "//h", "http:h", "http:/h", "http://", "http:///", "ftp://h", "http://h/x", "http://h?x",
        "http://h#x", "http://h//", "http://u@h", "httpss://h", " http://h"}) {
    EXPECT_FALSE(parse_origin(wrong)) << wrong;
  }
}

TEST(Origin, SaysItsAuthorityAsHostDoes) {
  EXPECT_EQ(canonical_origin(Scheme::http, "H:80")->authority(), "h");
  EXPECT_EQ(canonical_origin(Scheme::https, "h:80")->authority(), "h:80");
  EXPECT_EQ(canonical_origin(Scheme::https, "[::1]:443")->authority(), "[::1]");
  EXPECT_EQ(canonical_origin(Scheme::https, "[::1]:444")->authority(), "[::1]:444");
}

TEST(Origin, DistinguishesAddressesFromNames) {
  for (const std::string_view address : {"127.0.0.1", "127.1", "[::1]", "0"}) {
    EXPECT_TRUE(canonical_origin(Scheme::http, address)->is_ip_literal()) << address;
  }
  for (const std::string_view host : {"h", "h1", "1a", "127.0.0.1.nip.io", "host-1", "x.1a", "a0x1"}) {
    EXPECT_FALSE(canonical_origin(Scheme::http, host)->is_ip_literal()) << host;
  }
}

TEST(Origin, DiffersByTlsIdentity) {
  Origin one = *canonical_origin(Scheme::https, "h");
  Origin other = one;
  other.tls = 1;
  EXPECT_FALSE(one == other);
  EXPECT_EQ(one.label(), other.label());
}

}  // namespace
}  // namespace carpool::pool
