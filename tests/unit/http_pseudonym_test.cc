// Unit tests of the name of this proxy in Via.
#include "proxy/http/pseudonym.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace carpool::proxy::http {
namespace {

std::uint32_t draw_words_first() {
  static constexpr std::array<std::uint32_t, 5> kDrawn{0x12abc678, 0xbad00000, 0x00000fee, 0xdeadbeef, 0x0a1bc2de};
  static std::size_t drawn = 0;
  return kDrawn.at(drawn++);
}

TEST(APseudonym, ContainsNoWord) {
  EXPECT_EQ(draw_pseudonym(draw_words_first), "carpool-0a1bc2de");
}

}  // namespace
}  // namespace carpool::proxy::http
