// Unit tests of FieldLayouts: which sections are known, and for how long.
#include <unordered_map>

#include "tests/unit/heap_in_use.h"
#include "tests/unit/http_support.h"

namespace carpool::proxy::http {
namespace {

constexpr std::string_view kSection = "Host: a.test\r\nUser-Agent: a client\r\n\r\n";

std::string request_with(std::string_view section) {
  return std::string("GET / HTTP/1.1\r\n").append(section);
}

bool knows(FieldLayouts& layouts, std::string_view section) {
  return layouts.find(section).layout != nullptr;
}

void receive(FieldLayouts& layouts, std::string_view section, int times = 1) {
  for (; times > 0; --times) ASSERT_EQ(read_requests(request_with(section), {}, {}, &layouts).messages, 1U);
}

std::string of_number(std::size_t number) {
  return "Host: a.test\r\nX-Number-Of-Section: " + std::to_string(number) + "\r\n\r\n";
}

TEST(FieldLayouts, KnowASectionThatCameTwice) {
  FieldLayouts layouts;
  receive(layouts, kSection);
  EXPECT_FALSE(knows(layouts, kSection));
  EXPECT_TRUE(layouts.empty());
  receive(layouts, kSection);
  EXPECT_TRUE(knows(layouts, kSection));
  EXPECT_EQ(layouts.find(kSection).layout->fields(), 2U);
}

// Some of these share a place among the sections that came once.
TEST(FieldLayouts, KnowTwoSectionsThatComeInTurn) {
  for (std::size_t number = 0; number < 2000; ++number) {
    FieldLayouts layouts;
    const std::string other = of_number(number);
    for (int turn = 0; turn < 2; ++turn) {
      receive(layouts, kSection);
      receive(layouts, other);
    }
    EXPECT_TRUE(knows(layouts, kSection) && knows(layouts, other)) << number;
  }
}

TEST(FieldLayouts, KnowItBeforeABody) {
  FieldLayouts layouts;
  receive(layouts, kSection, 2);
  EXPECT_TRUE(knows(layouts, std::string(kSection) + "GET / HTTP/1.1\r\n\r\n"));
}

TEST(FieldLayouts, KnowNoSectionWithAnotherByte) {
  FieldLayouts layouts;
  receive(layouts, kSection, 2);
  for (std::size_t at = 0; at < kSection.size(); ++at) {
    std::string other(kSection);
    other[at] = static_cast<char>(other[at] ^ 1);
    EXPECT_FALSE(knows(layouts, other)) << at;
  }
}

TEST(FieldLayouts, KnowNoSectionWithTheSameHash) {
  FieldLayouts layouts;
  std::unordered_map<std::uint32_t, std::string> by_hash;
  for (std::size_t number = 1'000'000; number < 2'000'000; ++number) {
    std::string section = of_number(number);
    const auto [other, is_new] = by_hash.try_emplace(layouts.find(section).hash, section);
    if (is_new) continue;
    receive(layouts, other->second, 2);
    EXPECT_TRUE(knows(layouts, other->second));
    EXPECT_FALSE(knows(layouts, section));
    return;
  }
  FAIL() << "a million sections have as many hashes of 31 bits";
}

TEST(FieldLayouts, KnowNoPartOfASection) {
  FieldLayouts layouts;
  receive(layouts, kSection, 2);
  for (std::size_t size = 0; size < kSection.size(); ++size) EXPECT_FALSE(knows(layouts, kSection.substr(0, size)));
}

TEST(FieldLayouts, AreNotUsedInTheMiddleOfASection) {
  FieldLayouts layouts;
  receive(layouts, kSection, 2);
  const std::string begin = "GET / HTTP/1.1\r\nX-First: 1\r\n";
  const Reading result = read_requests(begin + std::string(kSection), {begin.size()}, {}, &layouts);
  EXPECT_EQ(result, read_requests(begin + std::string(kSection)));
  EXPECT_EQ(result.messages, 1U);
}

TEST(FieldLayouts, KeepNoSectionThatIsRejected) {
  FieldLayouts layouts;
  constexpr std::string_view kFolded = "Host: a.test\r\nX-Folded: a\r\n b\r\n\r\n";
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(read_requests(request_with(kFolded), {}, {}, &layouts).fault);
  EXPECT_FALSE(knows(layouts, kFolded));
}

TEST(FieldLayouts, KeepNoSectionWhoseWhiteSpaceIsStripped) {
  FieldLayouts layouts;
  constexpr std::string_view kSpaces = "Host: a.test\r\nUser-Agent:  a client \r\n\r\n";
  receive(layouts, kSpaces, 3);
  EXPECT_FALSE(knows(layouts, kSpaces));
}

TEST(FieldLayouts, KeepNoSectionBelowTheirShortest) {
  FieldLayouts layouts;
  const std::string body(2 * FieldLayouts::kLongest, 'x');
  for (std::size_t size = 3; size < FieldLayouts::kShortest; ++size) {
    const std::string section = std::string(size - 3, 'a') + "\n\r\n";
    EXPECT_EQ(layouts.find(section + body).size, 0U) << size;
  }
  constexpr std::string_view kShort = "Host: a.test\r\n\r\n";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read_requests(request_with(kShort) + request_with(kShort) + body, {}, {}, &layouts).messages, 2U);
  }
  EXPECT_TRUE(layouts.empty());
}

TEST(FieldLayouts, KeepNoSectionBeyondTheirLongest) {
  FieldLayouts layouts;
  std::string section = "Host: a.test\r\nX-Long: ";
  section.append(FieldLayouts::kLongest - section.size() - 4, 'x').append("\r\n\r\n");
  ASSERT_EQ(section.size(), FieldLayouts::kLongest);
  receive(layouts, section, 2);
  EXPECT_TRUE(knows(layouts, section));
  section.insert(section.size() - 4, "x");
  receive(layouts, section, 3);
  EXPECT_FALSE(knows(layouts, section));
}

TEST(FieldLayouts, ObeyTheLimitsOfEachReader) {
  FieldLayouts layouts;
  receive(layouts, kSection, 2);
  ASSERT_TRUE(knows(layouts, kSection));
  EXPECT_EQ(read_requests(request_with(kSection), {}, {.headers = 1}, &layouts).fault, FaultKind::head_too_large);
  EXPECT_EQ(read_requests(request_with(kSection), {}, {.headers = 2}, &layouts).messages, 1U);
  const auto size = static_cast<std::uint32_t>(kSection.size());
  EXPECT_EQ(read_requests(request_with(kSection), {}, {.header_bytes = size - 1}, &layouts).fault,
            FaultKind::head_too_large);
  EXPECT_EQ(read_requests(request_with(kSection), {}, {.header_bytes = size}, &layouts).messages, 1U);
}

TEST(FieldLayouts, AreDroppedAfterASweepIntervalWithoutUse) {
  FieldLayouts layouts;
  receive(layouts, kSection, 2);
  receive(layouts, of_number(1), 3);
  ASSERT_TRUE(knows(layouts, kSection));
  layouts.sweep();
  ASSERT_TRUE(knows(layouts, kSection));
  layouts.sweep();
  EXPECT_TRUE(knows(layouts, kSection));
  EXPECT_FALSE(knows(layouts, of_number(1)));
  layouts.sweep();
  layouts.sweep();
  EXPECT_TRUE(layouts.empty());
}

std::size_t known_of(FieldLayouts& layouts, std::size_t numbers) {
  std::size_t known = 0;
  for (std::size_t number = 0; number < numbers; ++number) known += knows(layouts, of_number(number)) ? 1 : 0;
  return known;
}

TEST(FieldLayouts, StayBoundedAndKeepWhatIsUsed) {
  FieldLayouts layouts;
  receive(layouts, kSection, 2);
  for (std::size_t number = 0; number < 20 * FieldLayouts::kMax; ++number) {
    receive(layouts, of_number(number), 2);
    EXPECT_TRUE(knows(layouts, kSection)) << number;
  }
  const std::size_t known = known_of(layouts, 20 * FieldLayouts::kMax);
  EXPECT_LE(known, FieldLayouts::kMax);
  EXPECT_GT(known, 0U);
}

// The requests to so many origins differ in Host alone.
TEST(FieldLayouts, KnowAThousandSectionsThatComeInTurn) {
  constexpr std::size_t kSections = 1000;
  FieldLayouts layouts;
  for (int turn = 0; turn < 2; ++turn) {
    for (std::size_t number = 0; number < kSections; ++number) receive(layouts, of_number(number));
  }
  EXPECT_GE(known_of(layouts, kSections), kSections * 9 / 10);
}

TEST(FieldLayouts, GiveTheirMemoryBackWhenFewAreLeft) {
  FieldLayouts layouts;
  receive(layouts, kSection, 2);
  const std::int64_t few = test::heap_in_use();
  for (std::size_t number = 0; number < FieldLayouts::kMax; ++number) {
    receive(layouts, of_number(number), 2);
    ASSERT_TRUE(knows(layouts, kSection));
  }
  const std::int64_t many = test::heap_in_use();
  for (int turn = 0; turn < 2; ++turn) {
    layouts.sweep();
    EXPECT_TRUE(knows(layouts, kSection));
  }
  EXPECT_LE(test::heap_in_use() - few, (many - few) / 10);
}

TEST(FieldLayouts, AreEmptyAfterSomeFoundNoPlaceInFewerSets) {
  constexpr std::size_t kSections = 500, kColliding = 6, kFewestSets = 32;  // four of six find a place
  const auto place = [](FieldLayouts& layouts, std::size_t number) {
    return (layouts.find(of_number(number)).hash >> 1) % kFewestSets;
  };
  FieldLayouts layouts;
  for (std::size_t number = 0; number < kSections; ++number) receive(layouts, of_number(number), 2);
  std::size_t used = 0;
  FieldLayouts others;
  for (std::size_t number = 0; number < kSections && used < kColliding; ++number) {
    if (place(others, number) == place(others, 0) && knows(layouts, of_number(number))) ++used;
  }
  ASSERT_EQ(used, kColliding);
  for (int turn = 0; turn < 2; ++turn) layouts.sweep();
  EXPECT_TRUE(layouts.empty());
}

}  // namespace
}  // namespace carpool::proxy::http
