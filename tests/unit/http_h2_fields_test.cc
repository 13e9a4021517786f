// Unit tests of H2Fields: which texts a header block refers to, and which it owns.
#include "proxy/http/h2/fields.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace carpool::proxy::http {
namespace {

std::vector<std::string> texts(const H2Fields& fields) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    all.push_back(std::string(fields[i].name) + "=" + std::string(fields[i].value) + (fields[i].sensitive ? "!" : ""));
  }
  return all;
}

// A response whose head is overwritten after its fields were used.
struct Response {
  Response() {
    head.status = 200;
    head.framing = Framing::length;
    head.length = 1024;
    for (const char* name : {"server", "etag", "connection", "x-one"}) head.fields.add(name, std::string(20, 'v'));
    rules.via_pseudonym = "p";
  }
  void overwrite() { head.fields.wipe(0); }
  const std::vector<std::string> expected = {":status=200",
                                             "server=" + std::string(20, 'v'),
                                             "etag=" + std::string(20, 'v'),
                                             "x-one=" + std::string(20, 'v'),
                                             "content-length=1024",
                                             "via=1.1 p"};
  ResponseHead head;
  ReplyRules rules;
};

TEST(AHeaderBlock, RefersToTheTextsOfItsHead) {
  Response response;
  H2Fields fields;
  h2_response(fields, response.head, response.rules);
  EXPECT_EQ(texts(fields), response.expected);
  EXPECT_EQ(fields[1].value.data(), response.head.fields[0].value.data());
}

TEST(AHeaderBlock, ThatOwnsItsTextsOutlivesItsHead) {
  Response response;
  H2Fields fields;
  h2_response(fields, response.head, response.rules);
  const std::size_t bytes = fields.bytes();
  fields.own();
  response.overwrite();
  EXPECT_EQ(texts(fields), response.expected);
  fields.own();
  const H2Fields moved = std::move(fields);
  EXPECT_EQ(texts(moved), response.expected);
  EXPECT_EQ(moved.bytes(), bytes);
}

TEST(AHeaderBlock, ThatIsACopyOutlivesHeadAndOriginal) {
  Response response;
  H2Fields copy;
  copy.add("left", "over");
  {
    H2Fields fields;
    h2_response(fields, response.head, response.rules);
    copy.copy_from(fields);
    EXPECT_EQ(copy.bytes(), fields.bytes());
  }
  response.overwrite();
  EXPECT_EQ(texts(copy), response.expected);
}

TEST(AHeaderBlock, KeepsItsOrderWhateverItOwns) {
  H2Fields fields;
  const std::string name = "b", value = "2", other = "d";
  fields.add("a", "1");
  fields.refer(name, value, true);
  fields.add("c", "", true);
  fields.add_value(other, "4", "5");
  EXPECT_EQ(texts(fields), (std::vector<std::string>{"a=1", "b=2!", "c=!", "d=45"}));
  fields.own();
  EXPECT_EQ(texts(fields), (std::vector<std::string>{"a=1", "b=2!", "c=!", "d=45"}));
  fields.clear();
  EXPECT_EQ(fields.size(), 0U);
  EXPECT_EQ(fields.bytes(), 0U);
}

TEST(ARequestOfHttp2, KeepsASensitivePathOutOfTheTable) {
  RequestHead head;
  head.method = "GET";
  head.sensitive_target = true;
  ForwardRules rules;
  rules.host = "o";
  rules.path = "/?token=1";
  H2Fields fields;
  h2_request(fields, head, rules, {"http", {}});
  EXPECT_EQ(texts(fields),
            (std::vector<std::string>{":method=GET", ":scheme=http", ":authority=o", ":path=/?token=1!"}));
}

TEST(ARequestOfHttp2, HasASlashBeforeAQueryWithoutPath) {
  RequestHead head;
  head.method = "GET";
  ForwardRules rules;
  rules.host = "o";
  rules.path = "?q";
  H2Fields fields;
  h2_request(fields, head, rules, {"http", {}});
  EXPECT_EQ(texts(fields), (std::vector<std::string>{":method=GET", ":scheme=http", ":authority=o", ":path=/?q"}));
}

}  // namespace
}  // namespace carpool::proxy::http
