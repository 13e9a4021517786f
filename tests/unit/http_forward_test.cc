// Unit tests of forwarded heads, byte for byte.
#include "proxy/http/forward.h"
#include "proxy/http/hop_by_hop.h"

#include "tests/unit/http_support.h"

namespace carpool::proxy::http {
namespace {

RequestHead request(std::string_view bytes) {
  RequestReader reader{Limits{}};
  RequestHead head;
  Collected sink;
  const Result<ParseResult> fed = reader.feed(bytes, head, sink);
  EXPECT_TRUE(fed) << bytes << (fed ? "" : fed.fault().detail);
  return head;
}

ResponseHead response(std::string_view bytes, std::string_view method = "GET", bool upgrade = false) {
  ResponseReader reader{Limits{}};
  reader.expect(method, upgrade);
  ResponseHead head;
  Collected sink;
  const Result<ParseResult> fed = reader.feed(bytes, head, sink);
  EXPECT_TRUE(fed) << bytes << (fed ? "" : fed.fault().detail);
  return head;
}

ForwardRules to(std::string_view path = "/s") {
  ForwardRules rules;
  rules.via_pseudonym = "carpool-1a2b3c4d";
  rules.host = "o:8080";
  rules.path = path;
  return rules;
}

// Returns the head sent upstream for a request with these fields.
std::string sent(std::string_view fields, const ForwardRules& rules = to(), std::string_view line = "GET /s HTTP/1.1") {
  std::string out("before");
  write_request(out, request(std::string(line) + "\r\nHost: a\r\n" + std::string(fields) + "\r\n"), rules);
  EXPECT_TRUE(out.starts_with("before"));
  return out.substr(6);
}

std::string around(std::string_view fields) {
  return std::string("GET /s HTTP/1.1\r\nHost: o:8080\r\n").append(fields).append("Via: 1.1 carpool-1a2b3c4d\r\n\r\n");
}

ReplyRules back() {
  ReplyRules rules;
  rules.via_pseudonym = "carpool-1a2b3c4d";
  return rules;
}

// Returns the head sent to the client for a response with these fields.
std::string returned(std::string_view fields, const ReplyRules& rules = back(),
                     std::string_view line = "HTTP/1.1 200 OK") {
  std::string out;
  const std::string bytes = std::string(line) + "\r\n" + std::string(fields) + "\r\n";
  write_response(out, response(bytes, rules.head_request ? "HEAD" : "GET", rules.upgrade), rules);
  return out;
}

std::string reply(std::string_view fields) {
  return std::string("HTTP/1.1 200 OK\r\n").append(fields).append("Via: 1.1 carpool-1a2b3c4d\r\n\r\n");
}

TEST(WriteRequest, PassesEndToEndFieldsInOrderAndWritesItsOwnFraming) {
  EXPECT_EQ(sent("User-Agent: x\r\naccept:  */*\r\nCookie: a=1;  b=2\r\nCookie: c=3\r\n"),
            around("User-Agent: x\r\naccept: */*\r\nCookie: a=1;  b=2\r\nCookie: c=3\r\n"));
  EXPECT_EQ(sent("Content-Length: 005\r\nA: b\r\n", to(), "POST /s HTTP/1.1"),
            "POST /s HTTP/1.1\r\nHost: o:8080\r\nA: b\r\nContent-Length: 5\r\nVia: 1.1 carpool-1a2b3c4d\r\n\r\n");
  EXPECT_EQ(sent("Content-Length: 0\r\n"), around("Content-Length: 0\r\n"));
  EXPECT_EQ(sent("transfer-encoding: Chunked\r\n"), around("Transfer-Encoding: chunked\r\n"));
}

TEST(WriteRequest, StatesThatARequestOfHttp2HasNoBodyIfItsMethodAnticipatesOne) {
  for (const std::string method : {"POST", "PUT", "PATCH", "GET", "DELETE"}) {
    RequestHead head;
    head.method = method;
    head.version = Version::http2;
    std::string out;
    write_request(out, head, to());
    EXPECT_EQ(out.find("Content-Length: 0\r\n") != std::string::npos, method.starts_with("P")) << out;
    head.version = Version::http11;
    out.clear();
    write_request(out, head, to());
    EXPECT_EQ(out.find("Content-Length"), std::string::npos) << "the client has chosen: " << out;
  }
}

TEST(WriteRequest, TellsOfTheClientAfterWhatTheRequestCarries) {
  ForwardRules rules = to();
  rules.client_name = "x-forwarded-for";
  rules.client_value = "192.0.2.1";
  EXPECT_EQ(sent("X-Forwarded-For: 10.0.0.1\r\n", rules),
            around("X-Forwarded-For: 10.0.0.1\r\nx-forwarded-for: 192.0.2.1\r\n"));
}

TEST(WriteRequest, NamesTheSpanOfThisProxyAsTheParent) {
  ForwardRules rules = to();
  const std::string fields = "Traceparent: 00-a-b-01\r\nTraceState: v=1\r\nbaggage: k=v\r\n";
  EXPECT_EQ(sent(fields, rules), around(fields)) << "without a span all pass";
  rules.traceparent = "00-a-c-01";
  EXPECT_EQ(sent(fields, rules), around("TraceState: v=1\r\nbaggage: k=v\r\ntraceparent: 00-a-c-01\r\n"));
  rules.begins_trace = true;
  EXPECT_EQ(sent(fields, rules), around("baggage: k=v\r\ntraceparent: 00-a-c-01\r\n"));
}

TEST(WriteResponse, TellsHowLongAConnectionMayBeIdle) {
  ReplyRules rules = back();
  rules.keep_alive = 54;
  EXPECT_EQ(
      returned("", rules),
      "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=54\r\nTransfer-Encoding: chunked\r\nVia: 1.1 "
      "carpool-1a2b3c4d\r\n\r\n");
  rules.close = true;
  EXPECT_EQ(returned("Content-Length: 0\r\n", rules).find("Keep-Alive"), std::string::npos);
}

TEST(WriteResponse, TellsLessThanTheIdleTimeout) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  EXPECT_EQ(announced_keep_alive(seconds(60)), 54U);
  EXPECT_EQ(announced_keep_alive(seconds(5)), 4U);
  EXPECT_EQ(announced_keep_alive(milliseconds(2500)), 1U);
  EXPECT_EQ(announced_keep_alive(milliseconds(1900)), 0U) << "too short to tell";
  EXPECT_EQ(announced_keep_alive(Duration::zero()), 0U) << "no limit";
  EXPECT_EQ(announced_keep_alive(std::chrono::hours(100)), 86'400U);
}

TEST(WriteRequest, SpeaksHttp11WhateverTheClientSpoke) {
  EXPECT_EQ(sent("Connection: keep-alive\r\n", to(), "GET /s HTTP/1.0"),
            "GET /s HTTP/1.1\r\nHost: o:8080\r\nVia: 1.0 carpool-1a2b3c4d\r\n\r\n");
}

TEST(WriteRequest, PassesAnExpectationOnlyFromAClientThatCanWaitForIt) {
  EXPECT_EQ(sent("Expect: 100-continue\r\n"), around("Expect: 100-continue\r\n"));
  EXPECT_EQ(sent("Expect: 100-continue\r\n", to(), "GET /s HTTP/1.0"),
            "GET /s HTTP/1.1\r\nHost: o:8080\r\nVia: 1.0 carpool-1a2b3c4d\r\n\r\n");
}

TEST(WriteRequest, SendsThePathAsItIs) {
  EXPECT_TRUE(sent("", to("/a/%2e%2e/%2Fb//c?x=%zz")).starts_with("GET /a/%2e%2e/%2Fb//c?x=%zz HTTP/1.1\r\n"));
  EXPECT_TRUE(sent("", to("?q=1")).starts_with("GET /?q=1 HTTP/1.1\r\n"));
  EXPECT_TRUE(sent("", to("*"), "OPTIONS * HTTP/1.1").starts_with("OPTIONS * HTTP/1.1\r\n"));
}

TEST(WriteRequest, RemovesWhatEndsAtThisHop) {
  EXPECT_EQ(sent("Connection: X-Hop\r\nX-Hop: 1\r\nX-Keep: 1\r\n"), around("X-Keep: 1\r\n"));
  EXPECT_EQ(sent("Connection: close\r\nClose: 1\r\nX-Keep: 1\r\n"), around("X-Keep: 1\r\n"));
  EXPECT_EQ(sent("Connection: keep-alive, x-one\r\nConnection: X-TWO\r\nX-One: 1\r\nX-Two: 2\r\nX-Three: 3\r\n"),
            around("X-Three: 3\r\n"));
  EXPECT_EQ(sent("Proxy-Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nTE: gzip;q=0.5\r\nUpgrade: foo/1\r\n"
                 "Proxy-Authorization: Basic eDp5\r\n"),
            around(""));
  EXPECT_EQ(sent("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"),
            around(""));
}

TEST(WriteRequest, NeverLetsConnectionRemoveTheFraming) {
  EXPECT_EQ(sent("Connection: Content-Length, Transfer-Encoding, Host\r\nContent-Length: 5\r\n"),
            around("Content-Length: 5\r\n"));
}

TEST(WriteRequest, ReducesTeToTrailers) {
  EXPECT_EQ(sent("Connection: TE\r\nTE: gzip, trailers\r\n"), around("TE: trailers\r\nConnection: TE\r\n"));
  EXPECT_EQ(sent("Connection: TE\r\nTE: gzip\r\n"), around(""));
  EXPECT_EQ(sent("TE: trailers\r\n"), around(""));
}

TEST(WriteRequest, PassesAnUpgradeOnlyWhenToldAndNeverH2c) {
  ForwardRules rules = to();
  const std::string fields = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
  EXPECT_EQ(sent(fields, rules), around("Sec-WebSocket-Version: 13\r\n"));
  rules.upgrade = true;
  EXPECT_EQ(sent(fields, rules), around("Sec-WebSocket-Version: 13\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"));
  EXPECT_EQ(sent("Connection: upgrade, te\r\nTE: trailers\r\nUpgrade: h2c, a\r\nUpgrade: b/2\r\n", rules),
            around("Upgrade: a, b/2\r\nTE: trailers\r\nConnection: Upgrade, TE\r\n"));
  EXPECT_EQ(sent("Connection: upgrade\r\nUpgrade: h2c\r\n", rules), around(""));
}

TEST(WriteRequest, AppendsItselfToVia) {
  EXPECT_EQ(sent("Via: 1.0 fred\r\nA: b\r\n"), around("Via: 1.0 fred\r\nA: b\r\n"));
}

TEST(WriteRequest, ReplacesMaxForwardsWhenTold) {
  ForwardRules rules = to();
  EXPECT_EQ(sent("Max-Forwards: 5\r\n", rules), around("Max-Forwards: 5\r\n"));
  rules.max_forwards = 4;
  EXPECT_EQ(sent("Max-Forwards: 5\r\n", rules), around("Max-Forwards: 4\r\n"));
}

TEST(ViaNames, FindsItsPseudonymAsAWordOnly) {
  const auto names = [](std::string_view via) {
    Fields fields;
    fields.add("Via", via);
    return via_contains(fields, "carpool-1a2b3c4d");
  };
  EXPECT_TRUE(names("1.1 carpool-1a2b3c4d"));
  EXPECT_TRUE(names("1.0 fred, 1.1 carpool-1a2b3c4d (x), 1.1 bob"));
  EXPECT_TRUE(names("1.1 carpool-1a2b3c4dx, 1.1 carpool-1a2b3c4d,1.1 bob"));
  EXPECT_FALSE(names("1.1 carpool-1a2b3c4e"));
  EXPECT_FALSE(names("1.1 xcarpool-1a2b3c4d"));
  EXPECT_FALSE(names("1.1 carpool-1a2b3c4d:80"));
  EXPECT_FALSE(names(""));
}

TEST(WriteResponse, PassesEndToEndFieldsInOrderAndWritesItsOwnFraming) {
  EXPECT_EQ(returned("Date: now\r\nContent-Length: 02\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\n"),
            reply("Date: now\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n"));
  EXPECT_EQ(returned("Content-Length: 0\r\n"), reply("Content-Length: 0\r\n"));
  EXPECT_EQ(returned("Transfer-Encoding: chunked\r\nTrailer: X-T\r\n"),
            reply("Trailer: X-T\r\nTransfer-Encoding: chunked\r\n"));
  EXPECT_EQ(returned(""), reply("Transfer-Encoding: chunked\r\n"));  // delimited by close upstream
}

TEST(WriteResponse, SpeaksHttp11AndKeepsStatusAndReason) {
  EXPECT_EQ(returned("Content-Length: 2\r\n", back(), "HTTP/1.0 299 So  Fine"),
            "HTTP/1.1 299 So  Fine\r\nContent-Length: 2\r\nVia: 1.0 carpool-1a2b3c4d\r\n\r\n");
  EXPECT_EQ(returned("Content-Length: 2\r\n", back(), "HTTP/1.1 200"),
            "HTTP/1.1 200 \r\nContent-Length: 2\r\nVia: 1.1 carpool-1a2b3c4d\r\n\r\n");
}

TEST(WriteResponse, RemovesWhatEndsAtThisHop) {
  EXPECT_EQ(
      returned(
          "Connection: X-Up, close\r\nX-Up: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: close\r\nUpgrade: foo\r\n"
          "Proxy-Authenticate: Basic\r\nProxy-Authentication-Info: x\r\nClose: 1\r\nContent-Length: 0\r\n"),
      reply("Content-Length: 0\r\n"));
}

TEST(WriteResponse, SaysHowTheConnectionGoesOn) {
  ReplyRules rules = back();
  rules.close = true;
  EXPECT_EQ(returned("Content-Length: 0\r\n", rules), reply("Connection: close\r\nContent-Length: 0\r\n"));
  rules.client_version = Version::http10;
  EXPECT_EQ(returned("Content-Length: 0\r\n", rules), reply("Connection: close\r\nContent-Length: 0\r\n"));
  rules.close = false;
  EXPECT_EQ(returned("Content-Length: 0\r\n", rules), reply("Connection: keep-alive\r\nContent-Length: 0\r\n"));
}

TEST(WriteResponse, SendsNoTransferCodingToHttp10) {
  ReplyRules rules = back();
  rules.client_version = Version::http10;
  rules.close = true;
  EXPECT_EQ(returned("Transfer-Encoding: chunked\r\n", rules), reply("Connection: close\r\n"));
  const ResponseHead head = response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(reply_framing(head, rules), Framing::until_close);
  EXPECT_EQ(reply_framing(head, back()), Framing::chunked);
}

TEST(WriteResponse, KeepsTheLengthOfABodyThatDoesNotCome) {
  ReplyRules head = back();
  head.head_request = true;
  EXPECT_EQ(returned("Content-Length: 10\r\n", head), reply("Content-Length: 10\r\n"));
  EXPECT_EQ(returned("Transfer-Encoding: chunked\r\n", head), reply(""));
  EXPECT_EQ(returned("Content-Length: 10\r\n", back(), "HTTP/1.1 304 Not Modified"),
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\nVia: 1.1 carpool-1a2b3c4d\r\n\r\n");
  for (const ReplyRules& rules : {back(), head}) {
    EXPECT_EQ(returned("Content-Length: 10\r\n", rules, "HTTP/1.1 204 No Content"),
              "HTTP/1.1 204 No Content\r\nVia: 1.1 carpool-1a2b3c4d\r\n\r\n");
  }
  head.upgrade = true;
  EXPECT_EQ(returned("Upgrade: websocket\r\nContent-Length: 10\r\n", head, "HTTP/1.1 101 Switching"),
            "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Via: 1.1 carpool-1a2b3c4d\r\n\r\n");
}

TEST(WriteResponse, LeavesAnAmbiguousLengthOut) {
  for (const std::string_view fields :
       {"Content-Length: 10\r\nContent-Length: 10\r\n", "Content-Length: 10\r\nTransfer-Encoding: chunked\r\n"}) {
    EXPECT_EQ(returned(fields, back(), "HTTP/1.1 304 Not Modified"),
              "HTTP/1.1 304 Not Modified\r\nVia: 1.1 carpool-1a2b3c4d\r\n\r\n");
  }
}

TEST(WriteResponse, PassesASwitchOfProtocols) {
  ReplyRules rules = back();
  rules.upgrade = true;
  EXPECT_EQ(returned("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n", rules,
                     "HTTP/1.1 101 Switching"),
            "HTTP/1.1 101 Switching\r\nSec-WebSocket-Accept: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Via: 1.1 carpool-1a2b3c4d\r\n\r\n");
}

TEST(ASwitchOfProtocols, IsToProtocolsThatTheRequestOffered) {
  const auto offered = [](std::string_view upgrade) {
    Fields request, switched;
    request.add("Upgrade", "h2c, WebSocket");
    request.add("upgrade", "foo/2");
    if (!upgrade.empty()) switched.add("Upgrade", upgrade);
    return switches_as_offered(request, switched);
  };
  EXPECT_TRUE(offered("websocket"));
  EXPECT_TRUE(offered("foo/2, websocket"));
  EXPECT_TRUE(offered("foo/2, HTTP/1.1")) << "RFC 2817 names the layers in ascending order";
  for (const char* other : {"", ",", "h2c", "HTTP/1.1", "foo", "bar", "websocket, bar"})
    EXPECT_FALSE(offered(other)) << other;
}

// Both lists together could otherwise occupy a loop for seconds.
TEST(ASwitchOfProtocols, NamesNoMoreThanSixteenOfThem) {
  Fields request, few, many;
  request.add("Upgrade", "foo");
  for (int i = 0; i < 16; ++i) few.add("Upgrade", "foo");
  for (int i = 0; i < 17; ++i) many.add("Upgrade", "foo");
  EXPECT_TRUE(switches_as_offered(request, few));
  EXPECT_FALSE(switches_as_offered(request, many));
}

// RFC 9110 §15.5.22 and §7.8.
TEST(WriteResponse, Of426NamesTheProtocolsThatTheOriginRequires) {
  const std::string_view fields = "Upgrade: h2c, websocket\r\nConnection: Upgrade\r\nContent-Length: 0\r\n";
  constexpr std::string_view kLine = "HTTP/1.1 426 Upgrade Required";
  const auto expected = [](std::string_view own) {
    return std::string("HTTP/1.1 426 Upgrade Required\r\n")
        .append(own)
        .append("Content-Length: 0\r\nVia: 1.1 carpool-1a2b3c4d\r\n\r\n");
  };
  ReplyRules rules = back();
  EXPECT_EQ(returned(fields, rules, kLine), expected("Upgrade: h2c, websocket\r\nConnection: Upgrade\r\n"));
  rules.keep_alive = 50;
  EXPECT_EQ(returned(fields, rules, kLine),
            expected("Upgrade: h2c, websocket\r\nConnection: Upgrade, keep-alive\r\nKeep-Alive: timeout=50\r\n"));
  rules.close = true;
  EXPECT_EQ(returned(fields, rules, kLine), expected("Upgrade: h2c, websocket\r\nConnection: Upgrade, close\r\n"));
  EXPECT_EQ(returned("Content-Length: 0\r\n", rules, kLine), expected("Connection: close\r\n"));
  rules.client_version = Version::http10;
  EXPECT_EQ(returned(fields, rules, kLine), expected("Connection: close\r\n"));
}

TEST(WriteInformational, PassesItsFields) {
  std::string out;
  const ResponseHead head =
      response("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\nX: y\r\nContent-Length: 3\r\n\r\n");
  write_informational(out, head, "carpool-1a2b3c4d");
  EXPECT_EQ(out, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nVia: 1.1 carpool-1a2b3c4d\r\n\r\n");
}

TEST(Chunks, AreWrittenInHexadecimal) {
  std::string out;
  write_chunk_head(out, 5);
  write_chunk_head(out, 0xABCDEF);
  EXPECT_EQ(out, "5\r\nabcdef\r\n");
  out.clear();
  Fields trailers;
  write_last_chunk(out, trailers);
  EXPECT_EQ(out, "0\r\n\r\n");
  out.clear();
  trailers.add("X-T", "1");
  trailers.add("Y", "");
  write_last_chunk(out, trailers);
  EXPECT_EQ(out, "0\r\nX-T: 1\r\nY: \r\n\r\n");
}

TEST(TrailerAllowed, NeverTakesFramingRoutingOrAuthentication) {
  for (const char* name :
       {"Content-Length", "transfer-encoding", "HOST", "Connection", "Authorization", "Cookie", "Set-Cookie", "TE",
        "Via", "Trailer", "Content-Type", "Cache-Control", "X-Forwarded-For", "Upgrade", "Keep-Alive"}) {
    EXPECT_FALSE(trailer_allowed(name)) << name;
  }
  for (const char* name : {"X-T", "grpc-status", "Digest", "ETag", "Server-Timing", "X-Content-Length"}) {
    EXPECT_TRUE(trailer_allowed(name)) << name;
  }
}

TEST(TrailerAllowed, TakesTheMetadataOfAGrpcCallButNoFraming) {
  for (const char* name : {"content-length", "transfer-encoding", "connection", "host", "te", "trailer", "upgrade"})
    EXPECT_FALSE(trailer_allowed(name, true)) << name;
  for (const char* name : {"grpc-status", "retry-after", "location", "date"})
    EXPECT_TRUE(trailer_allowed(name, true)) << name;
}

TEST(Fields, CompareNamesWithoutCaseAndKeepTheSpelling) {
  Fields fields;
  fields.add("X-Ab", "1");
  fields.add("x-aB", "2");
  EXPECT_EQ(fields.get("X-AB"), "1");
  EXPECT_EQ(fields[1].name, "x-aB");
  EXPECT_FALSE(fields.has("X-A"));
  EXPECT_EQ(fields.bytes(), 18U);
}

TEST(Fields, GiveMemoryBackWhenTheyWereLarge) {
  RequestHead head;
  head.fields.add("X", std::string(60000, 'a'));
  head.target.assign(16000, 'a');
  head.clear();
  head.shrink();
  EXPECT_LT(head.target.capacity(), 4097U);
  head.fields.add("X", "1");
  EXPECT_EQ(head.fields.get("x"), "1");
}

TEST(WriteRequest, HasNoPathForTheWholeServerBehindAParentProxy) {
  ForwardRules rules = to("*");
  EXPECT_TRUE(sent("", rules, "OPTIONS * HTTP/1.1").starts_with("OPTIONS * HTTP/1.1\r\n"));
  rules.absolute = "http://o:8080";
  EXPECT_TRUE(sent("", rules, "OPTIONS * HTTP/1.1").starts_with("OPTIONS http://o:8080 HTTP/1.1\r\n"));
}

TEST(WriteRequest, WritesTheLastStepOfMaxForwards) {
  ForwardRules rules = to("*");
  rules.max_forwards = 0;
  EXPECT_NE(sent("Max-Forwards: 1\r\n", rules, "OPTIONS * HTTP/1.1").find("\r\nMax-Forwards: 0\r\n"),
            std::string::npos);
}

TEST(WriteRequest, LeavesOutAForwardedFieldWhoseOpenStringWouldHideOurs) {
  ForwardRules rules = to();
  rules.client_name = "forwarded";
  rules.client_value = "for=192.0.2.1";
  const auto passes = [&rules](std::string_view value) {
    const std::string head = sent("Forwarded: " + std::string(value) + "\r\n", rules);
    EXPECT_NE(head.find("forwarded: for=192.0.2.1\r\n"), std::string::npos) << head;
    return head.find("Forwarded: ") != std::string::npos;
  };
  EXPECT_TRUE(passes("for=\"_a\""));
  EXPECT_TRUE(passes(R"(for="_\"a")"));
  EXPECT_FALSE(passes("for=\"_a"));
  EXPECT_FALSE(passes(R"(for="_a\")"));
}

TEST(Via, IsReadInOneLineOfTheLastMembers) {
  Fields fields;
  fields.add("Via", "1.1 first, 1.1 second (a)");
  fields.add("Other", "x");
  fields.add("via", "2 third");
  EXPECT_EQ(members_of_via(fields, 100), "1.1 first, 1.1 second (a), 2 third");
  EXPECT_EQ(members_of_via(fields, 34), "1.1 first, 1.1 second (a), 2 third");
  EXPECT_EQ(members_of_via(fields, 33), "1.1 second (a), 2 third");
  EXPECT_EQ(members_of_via(fields, 20), "2 third");
  EXPECT_EQ(members_of_via(fields, 7), "");
  EXPECT_EQ(members_of_via({}, 7), "");
}

}  // namespace
}  // namespace carpool::proxy::http
