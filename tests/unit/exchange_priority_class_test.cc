// Unit tests of the priority class of a request.
#include "proxy/exchange/priority_class.h"

#include <gtest/gtest.h>

namespace carpool::proxy {
namespace {

TEST(APriority, IsReadAsTheDictionaryThatItIs) {
  EXPECT_EQ(urgency("u=1"), 1U);
  EXPECT_EQ(urgency("i, u=5"), 5U);
  EXPECT_EQ(urgency("u=0;x=7, i"), 0U);
  EXPECT_EQ(urgency("u=1, u=6"), 6U) << "the last one counts";
  EXPECT_EQ(urgency(" \tu=7 "), 7U);
}

TEST(APriority, IsTheUsualOneWhereItSaysNothingThatCanBeRead) {
  for (const char* text : {"", "i", "u", "u=", "u=8", "u=-1", "u=11", "u=a", "U=1", "xu=1", "u =1"}) {
    EXPECT_EQ(urgency(text), 3U) << text;
  }
}

TEST(APriority, IsSpreadOverTheClassesAndTheUsualOneIsNoneOfTheHigherHalf) {
  const auto all = [](std::vector<std::string> classes) {
    std::string order;
    for (const char u : std::string("01234567")) {
      order += static_cast<char>('0' + class_of(classes, "", std::string("u=") + u));
    }
    return order;
  };
  EXPECT_EQ(all({"high", "normal"}), "00011111");
  EXPECT_EQ(all({"a", "b", "c"}), "00111222");
  EXPECT_EQ(all({"a", "b", "c", "d"}), "01122333");
  EXPECT_EQ(class_of({"high", "normal"}, "", ""), 1U);
}

TEST(APriority, GivesWayToTheListenersClassWhereThePoolHasIt) {
  EXPECT_EQ(class_of({"high", "normal"}, "high", "u=7"), 0U);
  EXPECT_EQ(class_of({"high", "normal"}, "normal", "u=0"), 1U);
  EXPECT_EQ(class_of({"gold", "silver"}, "high", "u=0"), 0U) << "no such class here: by urgency";
}

TEST(APriority, IsNothingWhereThereAreNoClasses) {
  EXPECT_EQ(class_of({}, "high", "u=7"), 0U);
}

}  // namespace
}  // namespace carpool::proxy
