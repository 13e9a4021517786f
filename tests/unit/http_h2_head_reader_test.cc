#include <gtest/gtest.h>

#include "proxy/http/h2/head_reader.h"
#include "tests/unit/http_h2_support.h"

namespace carpool::proxy::http {
namespace {

using Outcome = H2HeadReader::Outcome;

Outcome read(const List_& fields, RequestHead& head, bool end = true, bool extended = true, Limits limits = {}) {
  H2HeadReader reader(limits);
  reader.begin_request(head);
  for (const auto& [name, value] : fields) reader.field(name, value, false);
  return reader.end_request(end, extended);
}

Outcome request(const List_& fields, bool end = true, bool extended = true) {
  RequestHead head;
  return read(fields, head, end, extended);
}

List_ with(List_ fields, std::string_view name, std::string_view value) {
  fields.emplace_back(name, value);
  return fields;
}

Outcome response(const List_& fields, bool end = true, bool head_request = false) {
  H2HeadReader reader({});
  ResponseHead head;
  reader.begin_response(head);
  for (const auto& [name, value] : fields) reader.field(name, value, false);
  return reader.end_response(end, head_request);
}

TEST(AnH2Request, BecomesAHeadWithItsPseudoHeaderFields) {
  RequestHead head;
  ASSERT_EQ(read(with(get("/x?q"), "accept", "*/*"), head), Outcome::good);
  EXPECT_EQ(head.method, "GET");
  EXPECT_EQ(head.target, "/x?q");
  EXPECT_EQ(head.scheme, "http");
  EXPECT_EQ(head.authority, "a.test");
  EXPECT_EQ(head.version, Version::http2);
  EXPECT_EQ(head.framing, Framing::none);
  EXPECT_EQ(head.fields.size(), 1U);
}

TEST(AnH2Request, HasTheSameBytesForbiddenAtEveryPlaceOfItsTexts) {
  for (std::size_t size = 3; size < 20; ++size) {
    for (std::size_t at = 1; at + 1 < size; ++at) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        std::string text(size, '/');
        text[at] = static_cast<char>(byte);
        const bool visible = byte > ' ' && byte != 0x7F;
        const bool in_value = visible || byte == ' ' || byte == '\t';
        RequestHead head;
        EXPECT_EQ(read(get(text), head) == Outcome::good, visible) << size << " " << at << " " << byte;
        EXPECT_EQ(read(with(get(), "x", text), head) == Outcome::good, in_value) << size << " " << at << " " << byte;
      }
    }
  }
}

TEST(AnH2Request, HasTheSameBytesForbiddenAtEveryPlaceOfItsNames) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  for (std::size_t size = 1; size < 20; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        std::string name(size, 'n');
        name[at] = static_cast<char>(byte);
        const bool usual = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
        const bool token = usual || kOthers.find(name[at]) != std::string_view::npos;
        RequestHead head;
        EXPECT_EQ(read(with(get(), name, "v"), head) == Outcome::good, token) << size << " " << at << " " << byte;
      }
    }
  }
}

TEST(AnH2Request, HasItsFieldsInOrderHoweverLongTheyAre) {
  RequestHead head;
  List_ fields = get();
  std::vector<std::string> values;
  for (std::size_t size = 0; size < 600; size += 7) values.push_back(std::string(size, 'v'));
  for (const std::string& value : values) fields.emplace_back("x-long", value);
  ASSERT_EQ(read(with(fields, "cookie", "a=1"), head, true, true, {1 << 20, 1000, 8192}), Outcome::good);
  ASSERT_EQ(head.fields.size(), values.size() + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(head.fields[i].name, "x-long");
    EXPECT_EQ(head.fields[i].value, values[i]);
  }
  EXPECT_EQ(head.fields[values.size()].value, "a=1");
}

TEST(AnH2Request, HasNoTextOfTheOneBeforeThatWasBrokenOff) {
  H2HeadReader reader({});
  RequestHead head;
  reader.begin_request(head);
  reader.field("x-left", "over", false);
  reader.begin_request(head);
  for (const auto& [name, value] : get()) reader.field(name, value, false);
  reader.field("x-one", "1", false);
  ASSERT_EQ(reader.end_request(true, true), Outcome::good);
  EXPECT_EQ(head.fields.lines(0, head.fields.size()), "x-one: 1\r\n");
}

TEST(AnH2Request, WithoutContentIsWholeOnceItsStreamEnded) {
  for (const char* const length : {"", "0", "3"}) {
    RequestHead head;
    const List_ fields = *length == '\0' ? get() : with(get(), "content-length", length);
    ASSERT_EQ(read(fields, head, false), Outcome::good);
    EXPECT_FALSE(head.is_whole()) << length;
    EXPECT_EQ(read(fields, head), std::string_view(length) == "3" ? Outcome::malformed : Outcome::good);
    EXPECT_EQ(head.is_whole(), std::string_view(length) != "3");
  }
}

TEST(AnH2Request, HasNoCookieForAnEmptyCrumb) {
  RequestHead head;
  List_ fields = with(with(with(get(), "cookie", "a=1"), "cookie", ""), "cookie", "b=2");
  ASSERT_EQ(read(fields, head), Outcome::good);
  EXPECT_EQ(head.fields.get("cookie"), "a=1; b=2");
}

TEST(AnH2Request, HasItsCookieCrumbsJoined) {
  RequestHead head;
  List_ fields = with(with(with(get(), "cookie", "a=1"), "accept", "x"), "cookie", "b=2");
  ASSERT_EQ(read(fields, head), Outcome::good);
  EXPECT_EQ(head.fields.get("cookie"), "a=1; b=2");
}

TEST(AnH2Request, HasOneFieldForItsCookieHoweverManyCrumbsItHas) {
  Limits limits;
  limits.headers = 2;
  RequestHead head;
  List_ fields = with(get(), "accept", "x");
  for (int i = 0; i < 200; ++i) fields.emplace_back("cookie", "a=1");
  ASSERT_EQ(read(fields, head, true, true, limits), Outcome::good);
  EXPECT_EQ(head.fields.size(), 2U);
  EXPECT_EQ(read(with(fields, "x", "y"), head, true, true, limits), Outcome::too_large);
  limits.header_bytes = 4000;
  EXPECT_EQ(read(fields, head, true, true, limits), Outcome::too_large);
}

TEST(AnH2Request, SaysByItsFramesWhetherABodyComes) {
  RequestHead head;
  ASSERT_EQ(read(get(), head, false), Outcome::good);
  EXPECT_EQ(head.framing, Framing::chunked);
  ASSERT_EQ(read(with(get(), "content-length", "5"), head, false), Outcome::good);
  EXPECT_EQ(head.framing, Framing::length);
  EXPECT_EQ(head.length, 5U);
  EXPECT_EQ(request(with(get(), "content-length", "5"), true), Outcome::malformed);
  EXPECT_EQ(request(with(get(), "content-length", "0"), true), Outcome::good);
}

TEST(AnH2Request, IsMalformedWhereRfc9113SaysSo) {
  const List_ bad[] = {
      {{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}},
      {{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", ""}},
      {{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", "x"}},
      {{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", "*"}},
      {{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/a b"}},
      {{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/a\r\nx: y"}},
      {{":method", "G T"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/"}},
      {{":method", ""}, {":scheme", "http"}, {":authority", "a"}, {":path", "/"}},
      {{":method", "GET"}, {":authority", "a"}, {":path", "/"}},
      {{":scheme", "http"}, {":authority", "a"}, {":path", "/"}},
      with(get(), ":path", "/again"),
      with(get(), ":status", "200"),
      with(get(), ":unknown", "x"),
      with(with(get(), "accept", "x"), ":method", "GET"),
      with(get(), "Accept", "x"),
      with(get(), "acc ept", "x"),
      with(get(), "", "x"),
      with(get(), "x-a", "b\r\nx-c: d"),
      with(get(), "x-a", std::string_view("b\0c", 3)),
      with(get(), "x-a", " b"),
      with(get(), "x-a", "b\t"),
      with(get(), "x-a", "b\x7f"),
      with(get(), "connection", "close"),
      with(get(), "keep-alive", "x"),
      with(get(), "proxy-connection", "x"),
      with(get(), "transfer-encoding", "chunked"),
      with(get(), "upgrade", "websocket"),
      with(get(), "te", "gzip"),
      with(get(), "te", "trailers, gzip"),
      with(with(get(), "content-length", "0"), "content-length", "0"),
      with(get(), "content-length", "-1"),
      with(get(), "content-length", "5x"),
  };
  for (const List_& fields : bad) {
    EXPECT_EQ(request(fields, false), Outcome::malformed) << fields.back().first << ": " << fields.back().second;
  }
  EXPECT_EQ(request(with(get(), "te", "trailers")), Outcome::good);
}

TEST(AConnect, TakesOnlyAnAuthority) {
  EXPECT_EQ(request({{":method", "CONNECT"}, {":authority", "a:1"}}, false), Outcome::good);
  EXPECT_EQ(request({{":method", "CONNECT"}}, false), Outcome::malformed);
  EXPECT_EQ(request({{":method", "CONNECT"}, {":authority", "a:1"}, {":path", "/"}}, false), Outcome::malformed);
  EXPECT_EQ(request({{":method", "CONNECT"}, {":authority", "a:1"}, {":scheme", "http"}}, false), Outcome::malformed);
  EXPECT_EQ(request({{":method", "CONNECT"}, {":authority", "a:1"}, {"content-length", "3"}}, false),
            Outcome::malformed);
}

TEST(AnExtendedConnect, NeedsEverythingAndTheOffer) {
  const List_ all{{":method", "CONNECT"},
                  {":protocol", "websocket"},
                  {":scheme", "http"},
                  {":authority", "a.test"},
                  {":path", "/chat"}};
  RequestHead head;
  ASSERT_EQ(read(all, head, false), Outcome::good);
  EXPECT_EQ(head.protocol, "websocket");
  EXPECT_EQ(request(all, false, false), Outcome::malformed);
  EXPECT_EQ(request(with(get(), ":protocol", "websocket")), Outcome::malformed);
  EXPECT_EQ(request({{":method", "CONNECT"}, {":protocol", "websocket"}, {":scheme", "http"}, {":path", "/"}}),
            Outcome::malformed);
}

TEST(AnH2Head, OverALimitIsToldApartFromAMalformedOne) {
  Limits limits;
  limits.headers = 2;
  limits.target = 8;
  limits.header_bytes = 400;
  RequestHead head;
  List_ many = get();
  for (int i = 0; i < 3; ++i) many.emplace_back("x", "y");
  EXPECT_EQ(read(many, head, true, true, limits), Outcome::too_large);
  EXPECT_EQ(read(get("/0123456789"), head, true, true, limits), Outcome::too_large);
  const std::string long_value(300, 'v');
  EXPECT_EQ(read(with(get(), "x", long_value), head, true, true, limits), Outcome::too_large);
  EXPECT_EQ(read(with(get(), "x", "y"), head, true, true, limits), Outcome::good);
}

TEST(AnH2Head, WithAMethodTooLongIsRefusedAsInHttp1) {
  const auto method = [](std::size_t size) {
    H2HeadReader reader({});
    RequestHead head;
    reader.begin_request(head);
    reader.field(":method", std::string(size, 'M'), false);
    for (const auto& [name, value] : List_{{":scheme", "http"}, {":path", "/"}}) reader.field(name, value, false);
    return std::pair(reader.end_request(true, true), reader.too_large());
  };
  EXPECT_EQ(method(kMaxMethodLength).first, Outcome::good);
  EXPECT_EQ(method(kMaxMethodLength + 1), std::pair(Outcome::too_large, FaultKind::not_implemented));
}

TEST(AnH2Response, IsHeldAgainstTheSameRules) {
  EXPECT_EQ(response({{":status", "200"}}), Outcome::good);
  EXPECT_EQ(response({{":status", "103"}, {"link", "x"}}, false), Outcome::good);
  EXPECT_EQ(response({{":status", "204"}}), Outcome::good);
  EXPECT_EQ(response({{":status", "200"}, {"content-length", "5"}}, true, true), Outcome::good) << "HEAD";
  EXPECT_EQ(response({{":status", "304"}, {"content-length", "5"}}), Outcome::good);
  const List_ bad[] = {
      {},
      {{":status", "20"}},
      {{":status", "2000"}},
      {{":status", "abc"}},
      {{":status", "099"}},
      {{":status", "101"}},
      {{":status", "100"}},  // and ends the stream
      {{":status", "200"}, {":status", "200"}},
      {{":status", "200"}, {":path", "/"}},
      {{"x", "y"}, {":status", "200"}},
      {{":status", "200"}, {"connection", "close"}},
      {{":status", "200"}, {"X", "y"}},
      {{":status", "200"}, {"content-length", "5"}},
      {{":status", "200"}, {"content-length", "1"}, {"content-length", "2"}},
  };
  for (const List_& fields : bad) {
    EXPECT_EQ(response(fields), Outcome::malformed) << (fields.empty() ? "none" : fields.back().second);
  }
}

TEST(H2Trailers, AreFieldsAndEndTheMessage) {
  H2HeadReader reader({});
  Fields fields;
  reader.begin_trailers(fields);
  reader.field("grpc-status", "0", false);
  EXPECT_EQ(reader.end_trailers(true), Outcome::good);
  EXPECT_EQ(fields.get("grpc-status"), "0");
  EXPECT_EQ(reader.end_trailers(false), Outcome::malformed);
  reader.begin_trailers(fields);
  reader.field(":path", "/", false);
  EXPECT_EQ(reader.end_trailers(true), Outcome::malformed);
}

TEST(AFieldThatMayNotBeIndexed, IsMarkedForWhoPassesItOn) {
  H2HeadReader reader({});
  RequestHead head;
  reader.begin_request(head);
  for (const auto& [name, value] : get()) reader.field(name, value, false);
  reader.field("x-secret", "s", true);
  reader.field("x-open", "o", false);
  ASSERT_EQ(reader.end_request(true, true), Outcome::good);
  EXPECT_TRUE(head.fields.sensitive(0));
  EXPECT_FALSE(head.fields.sensitive(1));
}

TEST(APathThatMayNotBeIndexed, IsMarkedForWhoPassesItOn) {
  H2HeadReader reader({});
  RequestHead head;
  for (const bool sensitive : {true, false}) {
    reader.begin_request(head);
    for (const auto& [name, value] : get()) reader.field(name, value, sensitive && name == ":path");
    ASSERT_EQ(reader.end_request(true, true), Outcome::good);
    EXPECT_EQ(head.sensitive_target, sensitive);
  }
}

TEST(AnH2Request, KeepsACookieOutOfTheTableIfAnyPartOfItIsSensitive) {
  for (const int sensitive : {-1, 0, 1}) {
    H2HeadReader reader({});
    RequestHead head;
    reader.begin_request(head);
    for (const auto& [name, value] : get()) reader.field(name, value, false);
    reader.field("cookie", "a=1", sensitive == 0);
    reader.field("cookie", "b=2", sensitive == 1);
    ASSERT_EQ(reader.end_request(true, true), Outcome::good);
    ASSERT_EQ(head.fields.size(), 1U);
    EXPECT_EQ(head.fields.get("cookie"), "a=1; b=2");
    EXPECT_EQ(head.fields.sensitive(0), sensitive >= 0) << sensitive;
  }
}

TEST(AnH2Response, NeverSwitchesProtocols) {
  EXPECT_EQ(response({{":status", "101"}}, false), Outcome::malformed);
  EXPECT_EQ(response({{":status", "103"}}, false), Outcome::good);
}

}  // namespace
}  // namespace carpool::proxy::http
