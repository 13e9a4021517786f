#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "proxy/http/message_order.h"
#include "tests/unit/http_h2_support.h"

namespace carpool::proxy::http {
namespace {

using Phase = MessagePhase;
using Event = MessageEvent;

TEST(MessageOrder, TakesWholeMessages) {
  MessageOrder order;
  EXPECT_TRUE(order.informational(false));
  EXPECT_TRUE(order.informational(false));
  EXPECT_TRUE(order.head(false, 3, false));
  EXPECT_TRUE(order.data(1));
  EXPECT_TRUE(order.data(0));
  EXPECT_TRUE(order.data(2));
  EXPECT_TRUE(order.fields(true));
  EXPECT_EQ(order.phase(), Phase::ended);

  MessageOrder bare;
  EXPECT_TRUE(bare.head(true, 3, false)) << "an answer to HEAD announces what it does not carry";
  EXPECT_TRUE(bare.data(0));
  EXPECT_TRUE(bare.end());
}

TEST(MessageOrder, HoldsContentBackUntilTheFinalHead) {
  MessageOrder order;
  EXPECT_TRUE(order.informational(false));
  EXPECT_FALSE(order.data(1));
  EXPECT_STREQ(order.error(), "content before the final head");
  EXPECT_FALSE(order.head(false, std::nullopt, false)) << "nothing repairs a violation";
  EXPECT_STREQ(order.error(), "content before the final head") << "the first mistake is the one to tell";
}

TEST(MessageOrder, ComparesContentWithItsAnnouncedLength) {
  MessageOrder longer, shorter, none, by_trailers;
  longer.head(false, 3, false);
  EXPECT_FALSE(longer.data(4));
  shorter.head(false, 3, false);
  shorter.data(2);
  EXPECT_FALSE(shorter.end());
  EXPECT_FALSE(none.head(false, 3, true));
  by_trailers.head(false, 3, false);
  EXPECT_FALSE(by_trailers.fields(true));
}

TEST(MessageOrder, RefusesEveryFrameBehindTheEnd) {
  for (std::size_t event = 0; event < kMessageEvents; ++event) {
    EXPECT_EQ(follow(Phase::ended, static_cast<Event>(event)), Phase::closed);
  }
}

TEST(MessageOrder, HasWordsForEveryViolation) {
  for (std::size_t from = 0; from < kMessagePhases; ++from) {
    for (std::size_t event = 0; event < kMessageEvents; ++event) {
      if (!violates(follow(static_cast<Phase>(from), static_cast<Event>(event)))) continue;
      EXPECT_STRNE(violation(static_cast<Phase>(from), static_cast<Event>(event)), "") << from << " " << event;
    }
  }
}

// ---- the table on both sides of a session ----

constexpr int kProtocolError = 1, kStreamClosed = 5;

struct Asked {
  explicit Asked(bool head = false) {
    talk(client, server);
    H2Fields fields;
    for (const auto& [name, value] : get()) fields.add(name, value);
    Result<H2Stream*> stream = client.session.request(fields, record, true, head);
    EXPECT_TRUE(stream);
    record.stream = *stream;
    talk(client, server);
  }
  // Receives the origin's bytes in one read; returns the session's output.
  std::string receive(const std::string& bytes) {
    client.receive(bytes);
    return client.pull();
  }
  End client{H2Role::client}, server{H2Role::server};
  StreamRecord record;
};

std::string status(std::string_view code, bool end = false, const List_& more = {}) {
  List_ fields{{":status", code}};
  fields.insert(fields.end(), more.begin(), more.end());
  return headers(1, fields, end);
}

std::string padding() {
  return frame(0, 8 | kEndStream, 1, std::string("\x05", 1) + std::string(5, '\0'));
}

TEST(AnOrigin, ThatBreaksTheOrderOfItsResponseHasItsStreamReset) {
  const std::vector<std::pair<const char*, std::string>> responses = {
      {"1xx, then an empty end", status("103") + data(1, "", true)},
      {"1xx, then content and the end", status("103") + data(1, "abc", true)},
      {"1xx, then content", status("103") + data(1, "abc", false)},
      {"1xx, then no content", status("103") + data(1, "", false)},
      {"1xx, then padding alone", status("103") + padding()},
      {"1xx that ends", status("103", true)},
      {"1xx, then trailers", status("103") + headers(1, {{"x", "y"}}, true)},
      {"two final heads", status("200") + status("200")},
      {"1xx behind the final head", status("200") + status("103")},
      {"trailers without an end", status("200") + headers(1, {{"x", "y"}}, false)},
      {"content of a 204", status("204") + data(1, "abc", true)},
      {"content of a 304", status("304") + data(1, "abc", true)},
      {"too much", status("200", false, {{"content-length", "2"}}) + data(1, "abc", true)},
      {"too little", status("200", false, {{"content-length", "4"}}) + data(1, "abc", true)},
      {"too little, then trailers",
       status("200", false, {{"content-length", "4"}}) + data(1, "abc", false) + headers(1, {{"x", "y"}}, true)},
      {"none of an announced length", status("200", true, {{"content-length", "4"}})},
  };
  for (const auto& [what, bytes] : responses) {
    Asked one;
    EXPECT_EQ(error_of(one.receive(bytes), 1), kProtocolError) << what;
    EXPECT_TRUE(one.record.closed) << what;
    EXPECT_FALSE(one.record.ended) << what;
    EXPECT_TRUE(one.record.body.empty() || one.record.response.status != 0) << what;
  }
}

TEST(AnOrigin, ThatAnswersHeadWithContentHasItsStreamReset) {
  Asked one(true);
  EXPECT_EQ(error_of(one.receive(status("200", false, {{"content-length", "3"}}) + data(1, "abc", true)), 1),
            kProtocolError);
  EXPECT_EQ(one.record.body, "");
}

TEST(AnOrigin, MayEndWithEmptyDataOrWithTrailers) {
  Asked one, two, bare(true);
  one.receive(status("103") + status("103") + status("200") + data(1, "", false) + data(1, "a", false) + padding());
  EXPECT_TRUE(one.record.ended);
  EXPECT_EQ(one.record.body, "a");
  two.receive(status("200") + data(1, "a", false) + headers(1, {{"x", "y"}}, true));
  EXPECT_TRUE(two.record.ended);
  bare.receive(status("200", false, {{"content-length", "3"}}) + data(1, "", true));
  EXPECT_TRUE(bare.record.ended);
}

TEST(AnOrigin, MaySendSixtyFourInformationalHeadsAndNoMore) {
  Asked one;
  std::string bytes;
  for (std::uint32_t i = 0; i < kMaxInformational; ++i) bytes += status("103");
  EXPECT_EQ(error_of(one.receive(bytes), 1), -1);
  EXPECT_EQ(one.record.interim.size(), kMaxInformational);
  EXPECT_EQ(error_of(one.receive(status("103")), 1), kProtocolError);
  EXPECT_EQ(one.record.interim.size(), kMaxInformational);
}

TEST(AnOrigin, MaySendInformationalHeadsAsLargeTogetherAsOneHead) {
  Asked one;
  const std::string link(15000, 'x');
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += status("103", false, {{"link", link}});
  EXPECT_EQ(error_of(one.receive(bytes), 1), -1) << "60 of 64 KiB";
  EXPECT_EQ(error_of(one.receive(status("103", false, {{"link", link}})), 1), kProtocolError);
}

TEST(AClient, ThatBreaksTheOrderOfItsRequestHasItsStreamReset) {
  List_ post = get();
  post[0].second = "POST";
  List_ announced = post;
  announced.push_back({"content-length", "3"});
  const std::vector<std::pair<const char*, std::string>> requests = {
      {"two heads", headers(1, post, false) + headers(1, post, false)},
      {"trailers without an end", headers(1, post, false) + headers(1, {{"x", "y"}}, false)},
      {"too much", headers(1, announced, false) + data(1, "abcd", true)},
      {"too little", headers(1, announced, false) + data(1, "ab", true)},
      {"too little, then trailers",
       headers(1, announced, false) + data(1, "ab", false) + headers(1, {{"x", "y"}}, true)},
      {"none of an announced length", headers(1, announced, true)},
  };
  for (const auto& [what, bytes] : requests) {
    End server{H2Role::server};
    server.receive(preface() + bytes);
    EXPECT_EQ(error_of(server.pull(), 1), kProtocolError) << what;
  }
}

TEST(AClient, ThatSpeaksBehindItsEndIsRefused) {
  for (const std::string& more : {data(1, "abc", true), headers(1, {{"x", "y"}}, true)}) {
    End server{H2Role::server};
    server.receive(preface() + headers(1, get(), true) + more);
    const std::string said = server.pull();
    EXPECT_TRUE(error_of(said, 1) == kStreamClosed || error_of(said, 0) == kStreamClosed);
    EXPECT_EQ(server.streams.at(1).body, "");
  }
}

}  // namespace
}  // namespace carpool::proxy::http
