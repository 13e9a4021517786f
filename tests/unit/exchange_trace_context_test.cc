// Unit tests of the W3C trace context.
#include "proxy/exchange/trace_context.h"

#include <gtest/gtest.h>

#include <string>

namespace carpool::proxy {
namespace {

constexpr std::string_view kParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(ATraceParent, IsReadAndWritten) {
  const auto parent = parse_traceparent(kParent);
  ASSERT_TRUE(parent);
  EXPECT_EQ(0x4bf92f3577b34da6U, parent->trace.high);
  EXPECT_EQ(0xa3ce929d0e0e4736U, parent->trace.low);
  EXPECT_EQ(0x00f067aa0ba902b7U, parent->span);
  EXPECT_TRUE(parent->sampled());
  const TraceParentText text = write_traceparent(parent->trace, parent->span, parent->flags);
  EXPECT_EQ(kParent, std::string_view(text.data(), text.size()));
}

TEST(ATraceParent, OfALaterVersionIsReadByItsFirstParts) {
  for (const std::string& text :
       {"01" + std::string(kParent.substr(2)), "cc" + std::string(kParent.substr(2)) + "-what"}) {
    EXPECT_TRUE(parse_traceparent(text)) << text;
  }
}

TEST(ATraceParent, ThatIsMalformedIsNone) {
  const std::string good(kParent);
  std::string upper = good;
  upper[10] = 'F';
  for (const std::string& text :
       {std::string(), good.substr(1), good + "-", good + "x", "ff" + good.substr(2), upper, "0g" + good.substr(2),
        "01" + good.substr(2) + "x", good.substr(0, 35) + "_" + good.substr(36), good.substr(0, 53) + "0x",
        good.substr(0, 52) + "_01", "00-" + std::string(32, '0') + good.substr(35),
        good.substr(0, 36) + std::string(16, '0') + "-01", std::string(600, 'x')}) {
    EXPECT_FALSE(parse_traceparent(text)) << text;
  }
}

TEST(ATraceParent, WithoutTheFlagIsNotSampled) {
  EXPECT_FALSE(parse_traceparent(std::string(kParent.substr(0, 53)) + "02")->sampled());
  EXPECT_TRUE(parse_traceparent(std::string(kParent.substr(0, 53)) + "03")->sampled());
}

}  // namespace
}  // namespace carpool::proxy
