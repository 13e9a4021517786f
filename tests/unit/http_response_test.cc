// Unit tests of ResponseReader: accepted responses, where a response ends, and which origins' claims are ignored.
#include "tests/unit/http_support.h"

namespace carpool::proxy::http {
namespace {

using namespace std::string_view_literals;

std::string ok(std::string_view fields, std::string_view body = {}) {
  return std::string("HTTP/1.1 200 OK\r\n").append(fields).append("\r\n").append(body);
}

void refused(std::string_view bytes, FaultKind kind = FaultKind::malformed_response) {
  const Reading whole = read_response(bytes);
  EXPECT_EQ(whole.fault, kind) << bytes << "\n" << whole.text << whole.detail;
  EXPECT_EQ(whole, read_response(bytes, every_byte(bytes.size()))) << bytes;
}

// The result ends with this; `method` is the request's.
void taken(std::string_view bytes, std::string_view text, std::string_view method = "GET") {
  const Reading whole = read_response(bytes, {}, method);
  EXPECT_FALSE(whole.fault) << bytes << "\n" << whole.detail;
  EXPECT_EQ(whole.messages, 1U);
  EXPECT_NE(whole.text.find(text), std::string::npos) << whole.text;
  EXPECT_EQ(whole, read_response(bytes, every_byte(bytes.size()), method)) << bytes;
}

struct One {
  explicit One(std::string_view method = "GET", bool upgrade = false) { reader.expect(method, upgrade); }
  Result<ParseResult> feed(std::string_view bytes) { return reader.feed(bytes, head, sink); }
  ResponseReader reader{Limits{}};
  ResponseHead head;
  Collected sink;
};

TEST(ResponseReader, StopsBehindTheHeadAndBehindTheMessage) {
  One one;
  const std::string head = ok("Content-Length: 2\r\n");
  const std::string bytes = head + "okEVIL";
  const Result<ParseResult> first = one.feed(bytes);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->progress, Progress::head);
  EXPECT_EQ(first->consumed, head.size());
  const Result<ParseResult> second = one.feed(std::string_view(bytes).substr(head.size()));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->progress, Progress::message);
  EXPECT_EQ(second->consumed, 2U);
  EXPECT_EQ(one.sink.body, "ok");
  EXPECT_EQ(one.feed("EVIL")->consumed, 0U);
}

TEST(ResponseReader, FindsTheEndOfABody) {
  taken(ok("Content-Length: 5\r\n", "hello"), "|hello|");
  taken(ok("Content-Length: 0\r\n"), "f1n0k||\n");
  taken(ok("Transfer-Encoding: chunked\r\n", "5;x=y;z\r\nhello\r\n0\r\nX-T: 1\r\n\r\n"), "|hello|X-T=1;");
  taken(ok("Content-Length: 5\t\r\n", "hello"), "|hello|");
  taken(ok("Transfer-Encoding: chunked \t\r\n", "5\r\nhello\r\n0\r\nContent-Length: x\r\n\r\n"),
        "|hello|Content-Length=x;");
  taken(ok("", "until close"), "f3n0");
  taken("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "v0f1n2|ok");
}

TEST(ResponseReader, KnowsResponsesThatHaveNoBody) {
  taken(ok("Content-Length: 10\r\n"), "Content-Length: 10\r\n|v1f0n0k||", "HEAD");
  taken(ok(""), "f0n0k||", "HEAD");
  taken(ok("Transfer-Encoding: chunked\r\n"), "f0n0k||", "HEAD");
  taken("HTTP/1.1 204 No Content\r\n\r\nEVIL", "f0n0k||");
  taken("HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n", "Content-Length: 100\r\n|v1f0n0k||");
}

// RFC 9112 §6.1 and §6.3: these codings would be those of a response to GET.
TEST(ResponseReader, NeedsNotDecodeTheCodingsOfABodyThatDoesNotCome) {
  for (const std::string_view coding : {"gzip, chunked", "gzip"}) {
    const std::string fields = std::string("Transfer-Encoding: ").append(coding).append("\r\n");
    taken(ok(fields), "f0n0k||", "HEAD");
    for (const char* line : {"304 Not Modified", "204 No Content", "103 Early Hints"}) {
      const std::string rest = std::string_view(line).starts_with('1') ? ok("Content-Length: 0\r\n") : "";
      taken(std::string("HTTP/1.1 ").append(line).append("\r\n").append(fields).append("\r\n").append(rest), "f0n0k");
    }
    refused(ok(fields, "hello"));
  }
}

// RFC 9112 §6.3, the first rule. No further request is sent on the connection.
TEST(ResponseReader, EndsAMessageWithoutContentWithItsHeadWhateverItAnnounces) {
  for (const std::string_view fields :
       {"Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5\r\nContent-Length: 3\r\n",
        "Content-Length: 5, 5\r\n", "Content-Length: x\r\n", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\nContent-Length: 5\r\n"}) {
    taken(ok(fields), "v1f0n0||", "HEAD");
    taken(std::string("HTTP/1.1 204 No Content\r\n").append(fields).append("\r\n"), "v1f0n0||");
    taken(std::string("HTTP/1.1 304 Not Modified\r\n").append(fields).append("\r\nEVIL"), "v1f0n0||");
    taken(std::string("HTTP/1.1 103 Hints\r\n").append(fields).append("\r\n") + ok("Content-Length: 0\r\n"), "f1n0k||");
    refused(ok(fields, "hello"));
  }
  taken("HTTP/1.0 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "v0f0n0||", "HEAD");
}

TEST(ResponseReader, LeavesWhatFollowsAMessageWithoutBody) {
  One one;
  const std::string head = "HTTP/1.1 204 No Content\r\n\r\n";
  EXPECT_EQ(one.feed(head + "EVIL")->consumed, head.size());
  EXPECT_EQ(one.feed("EVIL")->progress, Progress::message);
  EXPECT_EQ(one.feed("EVIL")->consumed, 0U);
}

TEST(ResponseReader, GoesOnAfterInterimResponses) {
  const std::string bytes =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ok("Content-Length: 2\r\n", "ok");
  taken(bytes, "100|Continue||v1f0n0k103|Early Hints|Link: </a>\r\n|v1f0n0k200|OK|Content-Length: 2\r\n|v1f1n2k|ok|");
  std::string endless;
  for (int i = 0; i < 1000; ++i) endless.append("HTTP/1.1 103 Early Hints\r\n\r\n");
  refused(endless, FaultKind::informational_limit);
}

TEST(ResponseReader, TakesReasonsAsTheyCome) {
  taken("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "200||");
  taken("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "200||");
  taken("HTTP/1.1 299 So  Fine\xE4!\r\nContent-Length: 0\r\n\r\n", "299|So  Fine\xE4!|");
  taken("HTTP/1.1 999 x\r\nContent-Length: 0\r\n\r\n", "999|x|");
}

TEST(ResponseReader, TreatsAHigherMinorVersionAsTheHighestKnownOne) {
  for (const char* version : {"HTTP/1.1", "HTTP/1.2", "HTTP/1.9"}) {
    taken(std::string(version) + " 200 OK\r\nContent-Length: 2\r\n\r\nok", "v1f1n2k|ok");
    taken(std::string(version) + " 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "|ok|");
  }
}

TEST(ResponseReader, RefusesStatusLinesThatAreNone) {
  for (const char* line : {"HTTP/1.1 abc OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 099 OK",
                           "HTTP/1.1  200 OK", "HTTP/2.0 200 OK", "HTTP/1.x 200 OK", "HTTP/1.10 200 OK",
                           "HTTP/1. 200 OK", "http/1.1 200 OK", "ICY 200 OK", "HTTP/1.1\t200 OK", "HTTP/1.1 200\tOK",
                           "HTTP/1.1 200 a\x01", " HTTP/1.1 200 OK", "\r\nHTTP/1.1 200 OK", "HTTP/1.1 -20 OK"}) {
    refused(std::string(line) + "\r\nContent-Length: 0\r\n\r\n");
  }
  refused("HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n");
  refused("HTTP/1.1 200 a\rb\r\nContent-Length: 0\r\n\r\n");
  refused("EVIL");
  refused("HTTP/1.1 200 " + std::string(2000, 'a') + "\r\n\r\n", FaultKind::response_head_too_large);
}

TEST(ResponseReader, RefusesFieldLinesThatParsersReadDifferently) {
  refused(ok("X-A: a\0b\r\nContent-Length: 0\r\n"sv));
  refused(ok("X-A: a\r\n b\r\nContent-Length: 0\r\n"));
  refused(ok("X-A : a\r\nContent-Length: 0\r\n"));
  refused(ok("X-A: a\nContent-Length: 0\r\n"));
  refused(ok("X-A: a\rContent-Length: 0\r\n"));
  refused(ok(": a\r\n"));
}

TEST(ResponseReader, RefusesAmbiguousLengths) {
  refused(ok("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"));
  refused(ok("Content-Length: 5\r\nContent-Length: 3\r\n", "hello"));
  refused(ok("Content-Length: 5x\r\n", "hello"));
  refused(ok("Content-Length: -5\r\n", "hello"));
  refused(ok("Transfer-Encoding: gzip, chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"));
  refused(ok("Transfer-Encoding: identity\r\n", "hello"));
  refused("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  refused(ok("Transfer-Encoding: chunked\r\n", "zz\r\nhello\r\n0\r\n\r\n"));
}

TEST(ResponseReader, NeverTakesABrokenOffResponseForAWholeOne) {
  refused("", FaultKind::connection_terminated);
  refused("H", FaultKind::response_incomplete);
  refused(ok("Content-Length: 100\r\n", "short"), FaultKind::response_incomplete);
  refused(ok("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n"), FaultKind::response_incomplete);
  refused(ok("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n"), FaultKind::response_incomplete);
  refused("HTTP/1.1 100 Continue\r\n\r\n", FaultKind::response_incomplete);
}

TEST(ResponseReader, TellsAnEndBeforeAnyByteFromOneInsideAResponse) {
  One none;
  EXPECT_FALSE(none.reader.any_byte());
  EXPECT_EQ(none.reader.finish().fault().kind, FaultKind::connection_terminated);
  One some;
  ASSERT_TRUE(some.feed("H"));
  EXPECT_TRUE(some.reader.any_byte());
  EXPECT_EQ(some.reader.finish().fault().kind, FaultKind::response_incomplete);
}

TEST(ResponseReader, KnowsWhetherTheConnectionGoesOn) {
  const auto keeps = [](std::string_view bytes) {
    One one;
    EXPECT_TRUE(one.feed(bytes)) << bytes;
    return one.head.keep_alive;
  };
  EXPECT_TRUE(keeps(ok("Content-Length: 0\r\n")));
  EXPECT_FALSE(keeps(ok("Content-Length: 0\r\nConnection: foo, Close\r\n")));
  EXPECT_FALSE(keeps(ok("")));
  EXPECT_FALSE(keeps("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_TRUE(keeps("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"));
}

TEST(ResponseReader, SwitchesProtocolsOnlyWhereThatWasAsked) {
  const std::string bytes = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n";
  refused(bytes);
  One asked("GET", true);
  const Result<ParseResult> fed = asked.feed(bytes + "raw");
  ASSERT_TRUE(fed);
  EXPECT_EQ(fed->progress, Progress::upgraded);
  EXPECT_EQ(fed->consumed, bytes.size());
  EXPECT_EQ(asked.head.status, 101);
  EXPECT_EQ(asked.feed("raw")->consumed, 0U);
}

TEST(ResponseReader, ReadsARefusedUpgradeAsAnOrdinaryResponse) {
  One asked("GET", true);
  const std::string head =
      "HTTP/1.1 426 Upgrade Required\r\nUpgrade: foo\r\nConnection: upgrade\r\nContent-Length: 2\r\n\r\n";
  EXPECT_EQ(asked.feed(head)->progress, Progress::head);
  EXPECT_EQ(asked.feed("no")->progress, Progress::message);
}

TEST(ResponseReader, EndsTheHttpOfATunnel) {
  One connect("CONNECT");
  EXPECT_EQ(connect.feed("HTTP/1.1 200 OK\r\n\r\n")->progress, Progress::upgraded);
  One refusal("CONNECT");
  EXPECT_EQ(refusal.feed("HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\n")->progress, Progress::head);
}

TEST(ResponseReader, StartsAnewWithEachRequest) {
  One one;
  ASSERT_TRUE(one.feed(ok("Content-Length: 0\r\nX-Old: 1\r\n")));
  one.reader.expect("HEAD", false);
  EXPECT_FALSE(one.reader.any_byte());
  ASSERT_TRUE(one.feed(ok("Content-Length: 7\r\n")));
  EXPECT_FALSE(one.head.fields.has("x-old"));
  EXPECT_EQ(one.feed("")->progress, Progress::message);
}

TEST(ResponseReader, HoldsItsLimits) {
  std::string flood = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 100000; ++i) flood.append("X-A: b\r\n");
  One one;
  const Result<ParseResult> fed = one.feed(flood);
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.fault().kind, FaultKind::response_head_too_large);
  EXPECT_LE(one.head.fields.size(), Limits{}.headers);
  refused(ok("X-A: " + std::string(70000, 'a') + "\r\n"), FaultKind::response_head_too_large);
}

struct Lenient {
  Lenient() { reader.expect("GET", false, true); }
  // Reads in pieces of `size`; returns "status fields|body" or the error.
  std::string read(std::string_view bytes, std::size_t size) {
    for (std::size_t from = 0; from < bytes.size();) {
      std::string_view piece = bytes.substr(from, size);
      from += piece.size();
      for (;;) {
        const Result<ParseResult> fed = reader.feed(piece, head, sink);
        if (!fed) return fed.fault().detail;
        piece.remove_prefix(fed->consumed);
        if (fed->progress == Progress::message) return told() + (piece.empty() ? "" : " and more");
        if (fed->progress == Progress::need_more) break;
      }
    }
    return "unfinished";
  }
  std::string told() const {
    std::string text = std::to_string(head.status);
    for (std::size_t i = 0; i < head.fields.size(); ++i) {
      text.append(" ").append(head.fields[i].name).append("=").append(head.fields[i].value);
    }
    return text + "|" + sink.body;
  }
  ResponseReader reader{Limits{}};
  ResponseHead head;
  Collected sink;
};

TEST(ResponseReader, TakesABareLineFeedFromOriginsThatAreAllowedIt) {
  const std::string bare = "HTTP/1.1 103\nA: b\n\nHTTP/1.1 200 OK\nContent-Length: 2\nX: y\n\no\n";
  const std::string mixed = "HTTP/1.1 103\r\nA: b\n\r\nHTTP/1.1 200 OK\nContent-Length: 2\r\nX: y\n\r\no\n";
  for (const std::string& bytes : {bare, mixed}) {
    for (std::size_t size = 1; size <= bytes.size(); ++size) {
      EXPECT_EQ(Lenient().read(bytes, size), "200 Content-Length=2 X=y|o\n") << size;
    }
    refused(bytes);
  }
}

TEST(ResponseReader, TakesNothingElseFromThem) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}}) {
    EXPECT_EQ(Lenient().read("HTTP/1.1 200 OK\nX: a\rb\n\n", size), "a CR without LF");
    EXPECT_EQ(Lenient().read("HTTP/1.1 200 OK\nX: a\n b\n\n", size), "a folded field line");
    EXPECT_NE(Lenient().read("HTTP/1.1 200 OK\nX : a\nContent-Length: 0\n\n", size).find("token"), std::string::npos);
    EXPECT_EQ(Lenient().read("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nok\n0\n\n", size),
              "a chunk size with other than hexadecimal digits");
  }
}

TEST(ResponseReader, EndsAResponseWhoseInformationalHeadsHaveNoEnd) {
  std::string flood;
  for (std::uint32_t i = 0; i < kMaxInformational; ++i) flood += "HTTP/1.1 103 Early\r\n\r\n";
  taken(flood + ok("Content-Length: 0\r\n"), "f1n0");
  refused(flood + "HTTP/1.1 103 Early\r\n\r\n", FaultKind::informational_limit);
  const std::string large = "HTTP/1.1 103 Early\r\nX: " + std::string(15000, 'a') + "\r\n\r\n";
  taken(large + large + large + large + ok("Content-Length: 0\r\n"), "f1n0");
  refused(large + large + large + large + large, FaultKind::informational_limit);
}

TEST(ResponseReader, RefusesConnectionListsWithoutEnd) {
  std::string options = "Connection: a";
  for (int i = 0; i < 200; ++i) options += ", b" + std::to_string(i);
  refused(ok(options + "\r\nContent-Length: 0\r\n"));
}

TEST(ResponseReader, CountsInterimResponsesOfEachRequestAnew) {
  One one;
  std::string interim;
  for (int i = 0; i < 40; ++i) interim += "HTTP/1.1 103 Early Hints\r\n\r\n";
  for (int request = 0; request < 3; ++request) {
    one.reader.expect("GET", false);
    std::string bytes = interim + ok("Content-Length: 0\r\n");
    for (std::string_view rest = bytes; !rest.empty();) {
      const Result<ParseResult> fed = one.feed(rest);
      ASSERT_TRUE(fed) << request << ": " << fed.fault().detail;
      rest.remove_prefix(fed->consumed);
    }
    EXPECT_EQ(one.head.status, 200);
    EXPECT_EQ(one.feed("")->progress, Progress::message);
  }
}

}  // namespace
}  // namespace carpool::proxy::http
