// Unit tests of the GOAWAY filter: a second GOAWAY that raises the last stream is removed, an identifier that no stream
// of ours can have is replaced, and everything else passes byte for byte, however it is cut.
#include <gtest/gtest.h>

#include <string>

#include "proxy/http/h2/goaway_filter.h"

namespace carpool::proxy::http {
namespace {

std::string frame_of(char type, const std::string& payload) {
  std::string out{'\0', '\0', static_cast<char>(payload.size()), type, '\0', '\0', '\0', '\0', '\0'};
  return out + payload;
}
std::string goaway(char last, const std::string& words = "") {
  return frame_of(7, std::string{'\0', '\0', '\0', last, '\0', '\0', '\0', '\0'} + words);
}

std::string filtered(const std::string& bytes, std::size_t cut, H2Role ours = H2Role::client) {
  GoawayFilter filter(ours);
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += cut) {
    filter.filter(std::string_view(bytes).substr(at, cut), [&](std::string_view run) { out.append(run); });
  }
  return out;
}

TEST(GoawayFilter, RemovesOnlyGoawayFramesThatRaiseTheLastStream) {
  const std::string data = frame_of(0, "body"), ping = frame_of(6, "12345678");
  const std::string in = data + goaway(37, "soon") + ping + goaway(39, "later") + data + goaway(35) + goaway(37) + data;
  const std::string out = data + goaway(37, "soon") + ping + data + goaway(35) + data;
  for (std::size_t cut = 1; cut <= in.size(); ++cut) EXPECT_EQ(filtered(in, cut), out) << cut;
}

TEST(GoawayFilter, TakesAnEvenLastStreamForTheOddOneBelow) {
  const std::string in = goaway(8, "eight") + goaway(7) + goaway(8) + goaway(2) + goaway(0);
  const std::string out = goaway(7, "eight") + goaway(7) + goaway(7) + goaway(1) + goaway(0);
  for (std::size_t cut = 1; cut <= in.size(); ++cut) EXPECT_EQ(filtered(in, cut), out) << cut;
}

TEST(GoawayFilter, LeavesNoLastStreamInTheFramesOfAClient) {
  const std::string preface(kH2Preface), data = frame_of(0, "body");
  const std::string in = preface + data + goaway(0x7f, "soon") + data + goaway(5) + goaway(2) + goaway(9);
  const std::string out = preface + data + goaway(0, "soon") + data + goaway(0) + goaway(0) + goaway(0);
  for (std::size_t cut = 1; cut <= in.size(); ++cut) EXPECT_EQ(filtered(in, cut, H2Role::server), out) << cut;
}

TEST(GoawayFilter, LeavesAFrameThatIsTooShortToTheLibrary) {
  const std::string in = frame_of(7, "abc") + frame_of(0, "");
  for (std::size_t cut = 1; cut <= in.size(); ++cut) EXPECT_EQ(filtered(in, cut), in) << cut;
}

}  // namespace
}  // namespace carpool::proxy::http
