// Unit tests of the fields that ask for another method or path.
#include "proxy/http/override_fields.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

namespace carpool::proxy::http {
namespace {

Fields with(const std::vector<std::pair<std::string_view, std::string_view>>& all) {
  Fields fields;
  for (const auto& [name, value] : all) fields.add(name, value);
  return fields;
}

TEST(OverrideFields, AreFoundInEverySpelling) {
  for (const char* name : {"X-HTTP-Method-Override", "x-method-override", "X-HTTP-METHOD", "X_HTTP-Method_Override"}) {
    const Fields fields = with({{"X-Other", "a"}, {name, "delete"}});
    const Overrides found = overrides_of(fields);
    EXPECT_EQ(found.method, "DELETE") << name;
    EXPECT_TRUE(found.path.empty());
    EXPECT_FALSE(found.differ);
  }
  for (const char* name : {"X-Original-URL", "x_rewrite_url"}) {
    const Fields fields = with({{name, "/a?b"}});
    EXPECT_EQ(overrides_of(fields).path, "/a?b") << name;
  }
}

TEST(OverrideFields, OfOtherNamesOrWithoutAValueAreNone) {
  const Fields fields = with({{"X-HTTP-Method-Overrides", "PUT"}, {"XHTTP-Method", "PUT"}, {"X-HTTP-Method", ""}});
  const Overrides found = overrides_of(fields);
  EXPECT_TRUE(found.method.empty());
  EXPECT_TRUE(found.path.empty());
}

TEST(OverrideFields, MayAgreeOrDiffer) {
  const Fields same = with({{"X-HTTP-Method", "PUT"}, {"X-Method-Override", "put"}, {"X-Original-URL", "/a"}});
  EXPECT_FALSE(overrides_of(same).differ);
  const Fields methods = with({{"X-HTTP-Method", "PUT"}, {"X-HTTP-Method", "POST"}});
  EXPECT_TRUE(overrides_of(methods).differ);
  const Fields paths = with({{"X-Original-URL", "/a"}, {"X-Rewrite-URL", "/b"}});
  EXPECT_TRUE(overrides_of(paths).differ);
}

}  // namespace
}  // namespace carpool::proxy::http
