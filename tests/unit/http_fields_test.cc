// Unit tests of the facts that a head keeps about its fields.
#include <gtest/gtest.h>

#include "proxy/http/message.h"

namespace carpool::proxy::http {
namespace {

TEST(AHead, KnowsWhichNamesItHas) {
  Fields fields;
  fields.add("CONNECTION", "close");
  fields.add("x-other", "1");
  for (unsigned id = 1; id < kFieldNames; ++id) {
    const auto name = static_cast<FieldName>(id);
    EXPECT_EQ(fields.may_have(name), name == FieldName::connection) << id;
    EXPECT_EQ(fields.count(name), name == FieldName::connection ? 1U : 0U) << id;
  }
  EXPECT_EQ(fields.get(FieldName::connection), "close");
  fields.clear();
  EXPECT_FALSE(fields.may_have(FieldName::connection));
}

TEST(RequestHead, OfHttp2LeavesNothingToTheNextRequest) {
  RequestHead head;
  head.version = Version::http2;
  head.scheme = "https";
  head.authority = "a.test";
  head.protocol = "websocket";
  head.clear();
  EXPECT_EQ(head.scheme + head.authority + head.protocol, "");
  EXPECT_EQ(head.version, Version::http11);
}

}  // namespace
}  // namespace carpool::proxy::http
