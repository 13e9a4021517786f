// Unit tests of compressed responses, and of the pool of zlib's contexts.
#include "proxy/server/admin/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <thread>
#include <vector>

namespace carpool::proxy::admin {
namespace {

std::string unpacked(const std::string& body) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(body.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  inflateEnd(&stream);
  return out;
}

bool says_gzip(const Response& response) {
  for (const auto& [name, value] : response.headers) {
    if (name == "Content-Encoding") return value == "gzip";
  }
  return false;
}

TEST(ACompressedResponse, IsWhatItWasBefore) {
  const std::string text(50'000, 'x');
  Response response = text_response(200, "text/plain", text);
  compress(response);
  ASSERT_TRUE(says_gzip(response));
  EXPECT_LT(response.body.size(), 1000U);
  EXPECT_EQ(unpacked(response.body), text);
}

TEST(ACompressedResponse, IsForClientsThatAcceptIt) {
  const std::pair<std::string_view, bool> kFields[] = {
      {"", false},         {"gzip", true},         {"br, x-gzip", true},   {"*", true},
      {"gzip;q=0", false}, {"gzip; q=0.0", false}, {"gzip;q=0.1", true},   {"*;q=0", false},
      {"br", false},       {"gzip;q=0, *", false}, {"*;q=0, gzip", true},  {"identity;q=1", false},
      {"gzip;Q=0", false}, {"GZIP", true},         {"X-Gzip; Q=0.5", true}};
  for (const auto& [field, accepted] : kFields) {
    AdminRequest request;
    request.accept_encoding = field;
    EXPECT_EQ(accepts_gzip(request), accepted) << field;
  }
}

TEST(ACompressedResponse, IsALargeOne) {
  AdminRequest request;
  request.accept_encoding = "gzip";
  EXPECT_FALSE(should_compress(request, text_response(200, "text/plain", std::string(4095, 'x'))));
  EXPECT_TRUE(should_compress(request, text_response(200, "text/plain", std::string(4096, 'x'))));
}

TEST(ACompressedResponse, TakesItsContextFromAPoolThatNeverHoldsMoreThanFour) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 100; ++i) {
        const std::string text = std::string(5000, static_cast<char>('a' + t)) + std::to_string(i);
        Response response = text_response(200, "text/plain", text);
        compress(response);
        if (says_gzip(response)) {
          ASSERT_EQ(unpacked(response.body), text) << "nothing of another's answer";
        } else {
          ASSERT_EQ(response.body, text) << "all contexts were lent";
        }
      }
    });
  }
  threads.clear();
  EXPECT_GE(gzip_contexts(), 1U);
  EXPECT_LE(gzip_contexts(), 4U);
  EXPECT_EQ(gzip_contexts_in_use(), 0U);
}

}  // namespace
}  // namespace carpool::proxy::admin
