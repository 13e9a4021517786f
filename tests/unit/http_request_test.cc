// Unit tests of RequestReader: accepted and rejected messages, one by one.
#include <cstdio>
#include <string>
#include <utility>

#include "tests/unit/http_support.h"

namespace carpool::proxy::http {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kHost = "Host: a\r\n";

std::string get(std::string_view fields) {
  return std::string("GET /s HTTP/1.1\r\n").append(kHost).append(fields).append("\r\n");
}
std::string post(std::string_view fields, std::string_view body = "hello") {
  return std::string("POST /s HTTP/1.1\r\n").append(kHost).append(fields).append("\r\n").append(body);
}
std::string chunked(std::string_view body) {
  return post("Transfer-Encoding: chunked\r\n", body);
}

// The request is rejected, in one piece and byte by byte.
void refused_request(std::string_view bytes, FaultKind kind = FaultKind::malformed_request) {
  const Reading whole = read_requests(bytes);
  EXPECT_EQ(whole.fault, kind) << bytes << "\n" << whole.text << whole.detail;
  EXPECT_FALSE(whole.detail.empty());
  EXPECT_EQ(whole, read_requests(bytes, every_byte(bytes.size()))) << bytes;
}

// Reads one message with this body.
void taken_request(std::string_view bytes, std::string_view body = {}) {
  const Reading whole = read_requests(bytes);
  EXPECT_FALSE(whole.fault) << bytes << "\n" << whole.detail;
  EXPECT_EQ(whole.messages, 1U) << bytes;
  EXPECT_NE(whole.text.find("|" + std::string(body) + "|"), std::string::npos) << whole.text;
  EXPECT_TRUE(whole.boundary);
  EXPECT_EQ(whole, read_requests(bytes, every_byte(bytes.size()))) << bytes;
}

RequestHead head_of(std::string_view bytes) {
  RequestReader reader{Limits{}};
  RequestHead head;
  Collected sink;
  const Result<ParseResult> fed = reader.feed(bytes, head, sink);
  EXPECT_TRUE(fed) << bytes << (fed ? "" : fed.fault().detail);
  EXPECT_EQ(fed ? fed->progress : Progress::need_more, Progress::head);
  return head;
}

TEST(RequestReader, StopsBehindTheHeadAndBehindTheMessage) {
  RequestReader reader{Limits{}};
  RequestHead head;
  Collected sink;
  const std::string first = post("Content-Length: 5\r\n", "");
  const std::string bytes = first + "hello" + get("");
  Result<ParseResult> fed = reader.feed(bytes, head, sink);
  ASSERT_TRUE(fed);
  EXPECT_EQ(fed->progress, Progress::head);
  EXPECT_EQ(fed->consumed, first.size());
  EXPECT_EQ(sink.body, "");
  EXPECT_FALSE(reader.at_boundary());
  fed = reader.feed(std::string_view(bytes).substr(first.size()), head, sink);
  ASSERT_TRUE(fed);
  EXPECT_EQ(fed->progress, Progress::message);
  EXPECT_EQ(fed->consumed, 5U);
  EXPECT_EQ(sink.body, "hello");
  EXPECT_TRUE(reader.at_boundary());
  EXPECT_EQ(head.target, "/s");
}

TEST(RequestReader, CompletesAMessageWithoutBodyWithoutFurtherBytes) {
  RequestReader reader{Limits{}};
  RequestHead head;
  Collected sink;
  ASSERT_EQ(reader.feed(get(""), head, sink)->progress, Progress::head);
  const Result<ParseResult> fed = reader.feed("", head, sink);
  EXPECT_EQ(fed->progress, Progress::message);
  EXPECT_EQ(fed->consumed, 0U);
}

TEST(RequestReader, ReportsWhetherItIsInsideAHead) {
  RequestReader reader{Limits{}};
  RequestHead head;
  Collected sink;
  EXPECT_FALSE(reader.in_head());
  ASSERT_TRUE(reader.feed("\r\n", head, sink));
  EXPECT_FALSE(reader.in_head());
  EXPECT_TRUE(reader.at_boundary());
  ASSERT_TRUE(reader.feed("G", head, sink));
  EXPECT_TRUE(reader.in_head());
  EXPECT_FALSE(reader.at_boundary());
  ASSERT_TRUE(reader.feed("ET / HTTP/1.1\r\nHost: a\r\n", head, sink));
  EXPECT_TRUE(reader.in_head());
  ASSERT_TRUE(reader.feed("\r\n", head, sink));
  EXPECT_FALSE(reader.in_head());
  EXPECT_FALSE(reader.at_boundary());
}

TEST(RequestReader, ReadsPipelinedRequests) {
  const std::string bytes = post("Content-Length: 3\r\n", "one") + chunked("3\r\ntwo\r\n0\r\n\r\n") + "\r\n" + get("");
  const Reading result = read_requests(bytes);
  EXPECT_EQ(result.messages, 3U) << result.detail;
  EXPECT_EQ(result, read_requests(bytes, every_byte(bytes.size())));
}

TEST(RequestReader, TakesAnyMethodAsItIsWritten) {
  for (const char* method :
       {"GET", "get", "FROB", "QUERY", "M-SEARCH", "PRI", "CONNECT", "BASELINE-CONTROL", "a", "!#$%&'*+-.^_`|~09"}) {
    EXPECT_EQ(head_of(std::string(method) + " /s HTTP/1.1\r\nHost: a\r\n\r\n").method, method);
  }
  const std::string body = std::string("QUERY /s HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
  taken_request(body, "hello");
  refused_request(std::string(300, 'M') + " / HTTP/1.1\r\nHost: a\r\n\r\n", FaultKind::not_implemented);
}

TEST(RequestReader, RefusesRequestLinesThatAreNone) {
  refused_request("GET  /s HTTP/1.1\r\nHost: a\r\n\r\n");
  refused_request("GET /s  HTTP/1.1\r\nHost: a\r\n\r\n");
  refused_request(" GET /s HTTP/1.1\r\nHost: a\r\n\r\n");
  refused_request("GET /s x HTTP/1.1\r\nHost: a\r\n\r\n");
  refused_request("GET\t/s HTTP/1.1\r\nHost: a\r\n\r\n");
  refused_request("G(T /s HTTP/1.1\r\nHost: a\r\n\r\n");
  refused_request("GET /s\r\n\r\n");
  refused_request("GET\r\n\r\n");
  refused_request("GET /\0x HTTP/1.1\r\nHost: a\r\n\r\n"sv);
  refused_request("GET /\x7F HTTP/1.1\r\nHost: a\r\n\r\n");
  refused_request("GET /\tx HTTP/1.1\r\nHost: a\r\n\r\n");
  refused_request("GET /s HTTP/1.1 \r\nHost: a\r\n\r\n");
  refused_request("GET /s HTTP/1.1\rHost: a\r\n\r\n");
  refused_request("GET /s HTTP/1.1\nHost: a\r\n\r\n");
  refused_request("\r\n\r\nGET /s HTTP/1.1\r\nHost: a\r\n\r\n");
  refused_request("\nGET /s HTTP/1.1\r\nHost: a\r\n\r\n");
  refused_request("\rGET /s HTTP/1.1\r\nHost: a\r\n\r\n");
}

TEST(RequestReader, RefusesVersionsItDoesNotSpeak) {
  refused_request("GET /s http/1.1\r\nHost: a\r\n\r\n");
  refused_request("GET /s HTTP/1.10\r\nHost: a\r\n\r\n");
  refused_request("GET /s HTTP/1\r\nHost: a\r\n\r\n");
  refused_request("GET /s HTTP/01.1\r\nHost: a\r\n\r\n");
  refused_request("GET /s HTTP/0.9\r\nHost: a\r\n\r\n");
  refused_request("GET /s XHTTP/1.1\r\nHost: a\r\n\r\n");
  refused_request("GET /s HTTP/2.0\r\nHost: a\r\n\r\n", FaultKind::version_not_supported);
  refused_request("GET /s HTTP/3.0\r\nHost: a\r\n\r\n", FaultKind::version_not_supported);
  EXPECT_EQ(head_of("GET /s HTTP/1.2\r\nHost: a\r\n\r\n").version, Version::http11);
  EXPECT_EQ(head_of("GET /s HTTP/1.0\r\n\r\n").version, Version::http10);
}

// A connection that starts with the preface never reaches this reader; after a request it is no preface (RFC 9113
// §3.3).
TEST(RequestReader, RefusesThePrefaceOfHttp2BehindARequest) {
  const Reading result = read_requests("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"sv);
  EXPECT_EQ(result.fault, FaultKind::version_not_supported);
}

TEST(RequestReader, IgnoresOneEmptyLineInFrontOfARequest) {
  taken_request("\r\n" + get(""));
}

TEST(RequestReader, KeepsTheTargetAsReceived) {
  EXPECT_EQ(head_of("GET /a/%2e%2e/%2Fb//c?x=%zz&y=1+2|{} HTTP/1.1\r\nHost: a\r\n\r\n").target,
            "/a/%2e%2e/%2Fb//c?x=%zz&y=1+2|{}");
  EXPECT_EQ(head_of("GET /\xC3\xA4 HTTP/1.1\r\nHost: a\r\n\r\n").target, "/\xC3\xA4");
}

TEST(RequestReader, RefusesFieldLinesThatParsersReadDifferently) {
  refused_request(get("X-A: b\r\n c\r\n"));
  refused_request(get("X-A: b\r\n\tc\r\n"));
  refused_request(post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"));
  refused_request("GET /s HTTP/1.1\r\n X-A: 1\r\nHost: a\r\n\r\n");
  refused_request("GET /s HTTP/1.1\nHost: a\n\n");
  refused_request(get("X-A: b\nX-B: c\r\n"));
  refused_request(post("X-A: b\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n"));
  refused_request(get("X-A: a\rb\r\n"));
  refused_request(get("X-A: a\0b\r\n"sv));
  refused_request(get("X-\0A: ab\r\n"sv));
  refused_request(
      get("X-A: a\x01"
          "b\r\n"));
  refused_request(get("X-A : b\r\n"));
  refused_request(get("X-A\t: b\r\n"));
  refused_request(get(": b\r\n"));
  refused_request(get(":\r\n"));
  refused_request(get("X-A\r\n"));
  refused_request(get("X(A): b\r\n"));
  refused_request(get("X-\xC3\xA4: b\r\n"));
  refused_request("GET / HTTP/1.1\r\nHost: a\r\n\n");
  refused_request("GET / HTTP/1.1\r\nHost: a\r\n\rX: y\r\n\r\n");
}

TEST(RequestReader, StripsTheWhiteSpaceAroundAValue) {
  const RequestHead head = head_of(get("X-A:\t b c \t\r\nX-E:\r\nX-F: \t \r\n"));
  EXPECT_EQ(head.fields.get("x-a"), "b c");
  EXPECT_TRUE(head.fields.has("x-e"));
  EXPECT_EQ(head.fields.get("x-e"), "");
  EXPECT_EQ(head.fields.get("x-f"), "");
  EXPECT_EQ(head.fields.size(), 4U);
}

TEST(RequestReader, FindsTheEndOfABody) {
  taken_request(get(""));
  taken_request(get("Content-Length: 0\r\n"));
  taken_request(get("Content-Length: 5\r\n") + "hello", "hello");
  taken_request(post("Content-Length: 0005\r\n"), "hello");
  taken_request(post("Content-Length: 5 \r\n"), "hello");
  taken_request(chunked("3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"), "hello");
  taken_request(post("Transfer-Encoding: CHUNKED\r\n", "5\r\nhello\r\n0\r\n\r\n"), "hello");
  EXPECT_EQ(head_of(get("Content-Length: 0\r\n")).framing, Framing::length);
  EXPECT_EQ(head_of(get("")).framing, Framing::none);
}

TEST(RequestReader, StripsTheWhiteSpaceAroundALengthAndACoding) {
  for (const char* after : {"\t", " \t ", "\t\t"}) {
    taken_request(post(std::string("Content-Length:") + after + "5" + after + "\r\n"), "hello");
    taken_request(
        post(std::string("Transfer-Encoding:") + after + "chunked" + after + "\r\n", "5\r\nhello\r\n0\r\n\r\n"),
        "hello");
  }
  refused_request(post("Content-Length: 5\t6\r\n"));
  refused_request(post("Content-Length:\t\r\n"));
  refused_request(post("Content-Length: 5\x0B\r\n"));
}

TEST(RequestReader, RefusesAmbiguousLengths) {
  refused_request(post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"));
  refused_request(post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"));
  refused_request(post("Content-Length: 5\r\nContent-Length: 6\r\n"));
  refused_request(post("Content-Length: 5\r\nContent-Length: 5\r\n"));
  for (const char* length : {"5, 5", "+5", "-1", "0x5", "", "18446744073709551621", "9223372036854775808", "5;x", "5 5",
                             "five", "5,", "5.0"}) {
    refused_request(post(std::string("Content-Length: ") + length + "\r\n"));
  }
}

TEST(RequestReader, TakesNoTransferCodingButChunked) {
  refused_request(post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"));
  refused_request(post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"));
  refused_request(post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"));
  refused_request(post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"));
  refused_request(post("Transfer-Encoding: gzip, chunked, chunked\r\n", "0\r\n\r\n"));
  refused_request(post("Transfer-Encoding: chunked;q=1\r\n", "0\r\n\r\n"));
  refused_request(post("Transfer-Encoding: chunked chunked\r\n", "0\r\n\r\n"));
  refused_request(post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"));
  refused_request(post("Transfer-Encoding: identity\r\n", "0\r\n\r\n"));
  refused_request(post("Transfer-Encoding:\r\n", "0\r\n\r\n"));
  refused_request(
      post("Transfer-Encoding: \x0B"
           "chunked\r\nContent-Length: 5\r\n",
           "0\r\n\r\n"));
  refused_request(post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), FaultKind::not_implemented);
  refused_request("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
}

TEST(RequestReader, ReadsChunksStrictly) {
  taken_request(chunked("5;a=b;c\r\nhello\r\n0;z\r\n\r\n"), "hello");
  taken_request(chunked("5 ;a=\"b;c\"\r\nhello\r\n0\r\n\r\n"), "hello");
  taken_request(chunked("A\r\n0123456789\r\n0\r\n\r\n"), "0123456789");
  taken_request(chunked("00000000000000000005\r\nhello\r\n000\r\n\r\n"), "hello");
  for (const char* body : {"0x5\r\nhello\r\n0\r\n\r\n",
                           "-5\r\nhello\r\n0\r\n\r\n",
                           "+5\r\nhello\r\n0\r\n\r\n",
                           "10000000000000005\r\nhello\r\n0\r\n\r\n",
                           "FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
                           "\r\nhello\r\n0\r\n\r\n",
                           "5\r\nhelloX\r\n0\r\n\r\n",
                           "5\r\nhello\n0\r\n\r\n",
                           "5\r\nhello\r0\r\n\r\n",
                           "5;\nhello\r\n0\r\n\r\n",
                           "5;a\nhello\r\n0\r\n\r\n",
                           "5\nhello\r\n0\r\n\r\n",
                           "5\rhello\r\n0\r\n\r\n",
                           "5;a\rb\r\nhello\r\n0\r\n\r\n",
                           "g\r\nhello\r\n0\r\n\r\n",
                           "0_5\r\nhello\r\n0\r\n\r\n",
                           "5 \r\nhello\r\n0\r\n\r\n",
                           " 5\r\nhello\r\n0\r\n\r\n",
                           "5 6\r\nhello\r\n0\r\n\r\n",
                           ";a\r\nhello\r\n0\r\n\r\n",
                           "0\r\n\n",
                           "0\r\n\r\r\n",
                           "0\n\r\n",
                           "0\r\nX: y\n\r\n",
                           "0\r\nX: y\r\n z\r\n\r\n",
                           "0\r\n X: y\r\n\r\n",
                           "0\r\nX : y\r\n\r\n"}) {
    refused_request(chunked(body));
  }
  refused_request(chunked("2;\nxx\r\n4c\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"));
  refused_request(chunked("1;" + std::string(1024 * 1024, 'a')));
  refused_request(chunked(std::string(1024 * 1024, '0')));
}

TEST(RequestReader, HandsTrailersOverAndLeavesTheHeadAlone) {
  const Reading result = read_requests(chunked("5\r\nhello\r\n0\r\nX-T: 1 \r\nContent-Length: 3\r\n\r\n"));
  EXPECT_NE(result.text.find("|hello|X-T=1;Content-Length=3;\n"), std::string::npos) << result.text << result.detail;
  EXPECT_EQ(result.text.find("Content-Length: 3"), std::string::npos);
}

TEST(RequestReader, TakesNoTrailerForTheFramingOfItsBody) {
  taken_request(chunked("5\r\nhello\r\n0\r\nContent-Length: 3\r\nTransfer-Encoding: gzip\r\nConnection: close\r\n\r\n"),
                "hello");
  taken_request(chunked("5\r\nhello\r\n0\r\nContent-Length: x\r\nContent-Length: 3\r\n\r\n"), "hello");
}

TEST(RequestReader, DropsTrailersThatConnectionLists) {
  const Reading result =
      read_requests(post("Transfer-Encoding: chunked\r\nConnection: x-hop\r\n", "0\r\nX-Hop: 1\r\nX-Keep: 2\r\n\r\n"));
  EXPECT_NE(result.text.find("|X-Keep=2;\n"), std::string::npos) << result.text << result.detail;
}

TEST(RequestReader, ReportsWhetherTheConnectionIsKeptAlive) {
  EXPECT_TRUE(head_of(get("")).keep_alive);
  EXPECT_FALSE(head_of(get("Connection: close\r\n")).keep_alive);
  EXPECT_FALSE(head_of(get("Connection: x, CLOSE ,y\r\n")).keep_alive);
  EXPECT_FALSE(head_of(get("Connection: keep-alive\r\nConnection: close\r\n")).keep_alive);
  EXPECT_TRUE(head_of(get("Connection: closed\r\nProxy-Connection: close\r\n")).keep_alive);
  EXPECT_FALSE(head_of("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_FALSE(head_of("GET / HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n").keep_alive);
  EXPECT_TRUE(head_of("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep_alive);
}

TEST(RequestReader, ReportsTheExpectationOfTheClient) {
  EXPECT_TRUE(head_of(post("Expect: 100-Continue\r\nContent-Length: 5\r\n")).expect_continue);
  EXPECT_TRUE(head_of(post("Expect: a=1, 100-continue ,\r\nContent-Length: 5\r\n")).expect_continue);
  EXPECT_TRUE(head_of(post("Expect: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n")).expect_continue);
  EXPECT_FALSE(head_of(post("Expect: 200-ok\r\nContent-Length: 5\r\n")).expect_continue);
  EXPECT_FALSE(head_of(post("Expect: 100-continue\r\nConnection: expect\r\nContent-Length: 5\r\n")).expect_continue);
  EXPECT_FALSE(head_of("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expect_continue);
}

TEST(RequestReader, SeesAnUpgradeOnlyWhereItIsOneHopsRequest) {
  EXPECT_TRUE(head_of(get("Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n")).upgrade);
  EXPECT_TRUE(head_of(get("Connection: upgrade\r\nUpgrade: h2c, foo\r\n")).upgrade);
  EXPECT_FALSE(head_of(get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n")).upgrade);
  EXPECT_FALSE(head_of(get("Upgrade: websocket\r\n")).upgrade);
  EXPECT_FALSE(head_of(get("Connection: upgrade\r\n")).upgrade);
  EXPECT_FALSE(head_of("GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n").upgrade);
}

TEST(RequestReader, RefusesAnOfferOfMoreProtocolsThanAnySenderHas) {
  const auto offer = [](std::string_view option, std::size_t protocols) {
    std::string fields("Connection: ");
    fields.append(option).append("\r\nUpgrade: foo\r\nUpgrade: ");
    for (std::size_t i = 1; i < protocols; ++i) fields.append(i == 1 ? "foo" : ", foo");
    return get(fields.append("\r\n"));
  };
  EXPECT_TRUE(head_of(offer("upgrade", 64)).upgrade);
  refused_request(offer("upgrade", 65));
  EXPECT_FALSE(head_of(offer("keep-alive", 65)).upgrade) << "a field that is not forwarded";
}

TEST(RequestReader, ReadsTheBodyOfAnUpgradeRequestAsABody) {
  taken_request(post("Connection: upgrade\r\nUpgrade: foo\r\nContent-Length: 5\r\n"), "hello");
  taken_request("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nContent-Length: 5\r\n\r\nhello", "hello");
  const std::string two = get("Connection: upgrade\r\nUpgrade: foo\r\n") + get("");
  EXPECT_EQ(read_requests(two).messages, 2U);
}

TEST(RequestReader, HoldsItsLimits) {
  const Limits limits{.header_bytes = 200, .headers = 5, .target = 20};
  const auto over = [&](const std::string& bytes) {
    const Reading whole = read_requests(bytes, {}, limits);
    EXPECT_EQ(whole, read_requests(bytes, every_byte(bytes.size()), limits));
    return whole.fault;
  };
  EXPECT_EQ(over("GET /" + std::string(19, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), std::nullopt);
  EXPECT_EQ(over("GET /" + std::string(20, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), FaultKind::target_too_long);
  EXPECT_EQ(over(get("A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n")), std::nullopt);
  EXPECT_EQ(over(get("A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\n")), FaultKind::head_too_large);
  EXPECT_EQ(over(get("A: " + std::string(184, 'a') + "\r\n")), std::nullopt);
  EXPECT_EQ(over(get("A: " + std::string(185, 'a') + "\r\n")), FaultKind::head_too_large);
  EXPECT_EQ(over(chunked("0\r\nA: " + std::string(200, 'a') + "\r\n\r\n")), FaultKind::malformed_request);
  EXPECT_EQ(over(chunked("0\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\nF: 6\r\n\r\n")), FaultKind::malformed_request);
}

TEST(RequestReader, BoundsItsMemoryByItsLimits) {
  RequestReader reader{Limits{}};
  RequestHead head;
  Collected sink;
  ASSERT_TRUE(reader.feed("GET / HTTP/1.1\r\nHost: a\r\n", head, sink));
  std::string flood;
  for (int i = 0; i < 100000; ++i) flood.append("X-A: b\r\n");
  EXPECT_FALSE(reader.feed(flood, head, sink));
  EXPECT_LE(head.fields.size(), Limits{}.headers);
  EXPECT_LE(head.fields.bytes(), 2 * Limits{}.header_bytes);
}

TEST(RequestReader, RefusesConnectionListsWithoutEnd) {
  std::string list = "Connection: a";
  for (int i = 0; i < 64; ++i) list.append(",a");
  refused_request(get(list + "\r\n"));
}

TEST(RequestReader, StaysRefusingAfterAFault) {
  RequestReader reader{Limits{}};
  RequestHead head;
  Collected sink;
  EXPECT_FALSE(reader.feed("G(", head, sink));
  EXPECT_FALSE(reader.feed(get(""), head, sink));
  EXPECT_FALSE(reader.at_boundary());
}

TEST(RequestReader, IsSmall) {
  EXPECT_LE(sizeof(RequestReader), 160U);
  EXPECT_LE(sizeof(ResponseReader), 224U);
}

TEST(RequestReader, RefusesALengthThatIsNoNumberAndReadsOneWithLeadingZeros) {
  refused_request(post("Content-Length:\r\n", ""));
  refused_request(post("Content-Length: 99999999999999999999\r\n"));
  taken_request(post("Content-Length: 000000000000000000005\r\n"), "hello");
}

TEST(RequestReader, RefusesTwoWordsOnOneLength) {
  const std::string chunks = "5\r\nhello\r\n0\r\n\r\n";
  refused_request(post("Content-Length: 15\r\nTransfer-Encoding: chunked\r\n", chunks));
  refused_request(post("Transfer-Encoding: chunked\r\nContent-Length: 15\r\n", chunks));
  refused_request(post("Transfer-Encoding: chunked, gzip\r\n", chunks));
  refused_request(post("Transfer-Encoding: gzip, chunked\r\n", chunks), FaultKind::not_implemented);
}

TEST(RequestReader, LimitsTheChunkExtensionsOfABodyInTotal) {
  const auto chunks = [](std::size_t count, const std::string& extension, std::size_t size) {
    std::string body, data;
    for (std::size_t i = 0; i < count; ++i) {
      char digits[17];
      std::snprintf(digits, sizeof digits, "%zx", size);
      body += digits + extension + "\r\n" + std::string(size, 'a') + "\r\n";
      data += std::string(size, 'a');
    }
    return std::pair(body + "0\r\n\r\n", data);
  };
  refused_request(chunked(chunks(30, ";" + std::string(3000, 'e'), 1).first));
  refused_request(chunked(chunks(3000, ";" + std::string(200, 'e'), 1).first));
  for (const auto& [body, data] :
       {chunks(20, ";" + std::string(3000, 'e'), 1), chunks(40, ";" + std::string(3000, 'e'), 3000),
        chunks(3000, ";" + std::string(120, 'e'), 1), chunks(3000, "", 1)}) {
    taken_request(chunked(body), data);
  }
}

TEST(RequestReader, RefusesChunksThatDoNotEndInCrlf) {
  refused_request(chunked("5\r\nhello\rX0\r\n\r\n"));
  refused_request(chunked("5\rXhello\r\n0\r\n\r\n"));
  taken_request(chunked("5\r\nhello\r\n0\r\n\r\n"), "hello");
}

TEST(RequestReader, NamesTheWhiteSpaceThatDoesNotBelongInARequestLine) {
  EXPECT_EQ(read_requests(" GET /s HTTP/1.1\r\nHost: a\r\n\r\n").detail, "white space before the method");
  EXPECT_EQ(read_requests("GET  /s HTTP/1.1\r\nHost: a\r\n\r\n").detail, "more than one space in the request line");
}

}  // namespace
}  // namespace carpool::proxy::http
