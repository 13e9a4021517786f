// Unit tests of the memory that an HTTP/2 session keeps between header blocks: large ones leave none.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/heap_in_use.h"
#include "tests/unit/http_h2_support.h"

namespace carpool::proxy::http::rest {
namespace {

constexpr std::int64_t kLittle = 8192;
const std::string kLarge(12'000, 'x');

// Keeps nothing.
struct Forgetful final : H2StreamUser {
  void on_head(ResponseHead&) override {}
  void on_body(std::string_view) override {}
  void on_trailers(const Fields& fields) override { trailers = fields.bytes(); }
  void on_end() override {}
  void on_sent(std::size_t) override {}
  void on_closed(H2Error) override {}
  std::size_t trailers = 0;
};

struct Client final : End {
  Client() : End(H2Role::client) {
    receive(frame(4, 0, 0, ""));
    pull();
  }
  // Returns how much more the heap holds after the response.
  std::int64_t after(const std::string& response) {
    H2Fields fields;
    for (const auto& [name, value] : get()) fields.add(name, value);
    EXPECT_TRUE(session.request(fields, user, true, false));
    pull();
    const std::int64_t before = test::heap_in_use();
    EXPECT_TRUE(receive(response));
    return test::heap_in_use() - before;
  }
  Forgetful user;
};

TEST(ASessionBetweenResponses, KeepsNoLargeTrailers) {
  Client client;
  const List_ ok{{":status", "200"}};
  client.after(headers(1, ok, false) + headers(1, {{"x-sum", "1"}}));
  const std::string bytes = headers(3, ok, false) + headers(3, {{"x-sum", kLarge}});
  EXPECT_LT(client.after(bytes), kLittle);
  EXPECT_LT(kLarge.size(), client.user.trailers);
}

TEST(ASessionBetweenResponses, KeepsNoLargeHead) {
  Client client;
  client.after(headers(1, {{":status", "200"}}));
  const std::string malformed = headers(3, {{":status", "200"}, {"x-large", kLarge}, {"connection", "close"}});
  EXPECT_LT(client.after(malformed), kLittle);
  const std::string whole = headers(5, {{":status", "200"}, {"x-large", kLarge}});
  EXPECT_LT(client.after(whole), kLittle);
}

TEST(ASessionBetweenRequests, KeepsNoLargeHeadThatWasRefused) {
  H2Options options;
  options.head.header_bytes = 15'000;
  End server(H2Role::server, options);
  server.receive(preface() + headers(1, get()));
  server.pull();
  List_ fields = get();
  for (int n = 0; n < 14; ++n) fields.emplace_back("x-large", std::string_view(kLarge).substr(0, 1000));
  fields.emplace_back("x-larger", std::string_view(kLarge).substr(0, 1200));
  const std::string bytes = headers(3, fields);
  const std::int64_t before = test::heap_in_use();
  server.receive(bytes);
  EXPECT_EQ(FaultKind::head_too_large, server.refused);
  EXPECT_LT(test::heap_in_use() - before, kLittle);
}

}  // namespace
}  // namespace carpool::proxy::http::rest
