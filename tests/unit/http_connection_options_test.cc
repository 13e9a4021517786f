// Unit tests of Connection options: parsed once, in linear time, and only as far as the field's syntax allows.
#include "proxy/http/connection_options.h"

#include <gtest/gtest.h>

#include <string>

namespace carpool::proxy::http {
namespace {

ConnectionOptions options(const Fields& fields) {
  return ConnectionOptions(fields);
}

Fields connection(std::string_view value) {
  Fields fields;
  fields.add("Connection", value);
  return fields;
}

TEST(ConnectionOptions, SkipEmptyMembersOfTheList) {
  const Fields fields = connection(", ,close,,\tX-Hop , ,");
  EXPECT_TRUE(options(fields).close);
  EXPECT_TRUE(options(fields).lists("x-hop"));
  EXPECT_FALSE(options(fields).lists("x-other"));
  EXPECT_FALSE(options(fields).too_many());
}

TEST(ConnectionOptions, NameAFieldWithClose) {
  const Fields closes = connection("Close");
  EXPECT_TRUE(options(closes).lists("close") && options(closes).name_fields());
  EXPECT_FALSE(options(closes).lists("x-other"));
  const Fields keeps = connection("keep-alive");
  EXPECT_FALSE(options(keeps).lists("close") || options(keeps).name_fields());
}

TEST(ConnectionOptions, AreTooManyBeyondSixtyFour) {
  std::string names;
  for (int i = 0; i < 64; ++i) names.append("x-").append(std::to_string(i)).append(",");
  EXPECT_FALSE(options(connection(names)).too_many());
  const Fields fields = connection(names);
  EXPECT_TRUE(options(fields).lists("x-63"));
  EXPECT_TRUE(options(connection(names + "x-64")).too_many());
}

TEST(ConnectionOptions, AreTooManyInMoreThanFourKibibytesOfCommas) {
  EXPECT_FALSE(options(connection(std::string(4096, ','))).too_many());
  EXPECT_TRUE(options(connection(std::string(42 * 1024, ','))).too_many());
  EXPECT_TRUE(options(connection("a," + std::string(5000, '\t') + ",b")).too_many());
  Fields two = connection(std::string(3000, ','));
  two.add("Connection", std::string(3000, ','));
  EXPECT_TRUE(options(two).too_many()) << "in all fields together";
}

}  // namespace
}  // namespace carpool::proxy::http
