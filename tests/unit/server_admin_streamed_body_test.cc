// Unit tests of long responses: their pieces are the bytes of the whole, their steps are bounded, and gzip's context is
// released.
#include "proxy/server/admin/streamed_body.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "proxy/server/admin/json_list.h"
#include "tests/unit/server_admin_support.h"

namespace carpool::proxy::admin {
namespace {

constexpr std::size_t kMaxOver = std::size_t{4} * 1024;  // of a step: its last piece

Json told(int number) {
  return {
      {"number", number}, {"text", "two\nlines \"and\" \\"}, {"list", {1, Json::object()}}, {"none", Json::array()}};
}

Response list_of(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = i;
  return list_response("things", std::move(numbers), told);
}

std::string text_of_all(int count) {
  Json list = Json::array();
  for (int i = 0; i < count; ++i) list.push_back(told(i));
  return json_response(200, {{"things", std::move(list)}}).body;
}

AdminRequest asking(std::string_view coding) {
  AdminRequest request;
  request.accept_encoding = coding;
  return request;
}

class Unpacker {
 public:
  Unpacker() { EXPECT_EQ(inflateInit2(&stream_, 15 + 16), Z_OK); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  ~Unpacker() { inflateEnd(&stream_); }
  std::string unpack(std::string packed) {
    std::string out(1 << 20, '\0');
    stream_.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream_.avail_in = static_cast<uInt>(packed.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    complete = inflate(&stream_, Z_SYNC_FLUSH) == Z_STREAM_END;
    out.resize(out.size() - stream_.avail_out);
    return out;
  }
  bool complete = false;

 private:
  z_stream stream_{};
};

TEST(AListInPieces, IsTheTextOfTheWholeByteForByte) {
  for (const int count : {0, 1, 2, 7}) EXPECT_EQ(whole(list_of(count)).body, text_of_all(count)) << count;
}

TEST(AShortResponse, IsWholeAfterItsFirstStep) {
  Response response = list_of(3);
  EXPECT_EQ(Body::begin(asking("gzip"), response), nullptr);
  EXPECT_EQ(response.body, text_of_all(3));
  EXPECT_EQ(response.pieces, nullptr);
  EXPECT_EQ(gzip_contexts_in_use(), 0U) << "whoever sends it decides about gzip";
  Response plain = text_response(200, "text/plain", "as it is");
  EXPECT_EQ(Body::begin(asking("gzip"), plain), nullptr);
  EXPECT_EQ(plain.body, "as it is");
}

TEST(ALongResponse, IsMadeInStepsThatAreTheWholeTogether) {
  Response response = list_of(3000);
  const auto body = Body::begin(asking(""), response);
  ASSERT_NE(body, nullptr);
  std::string all;
  int steps = 1;
  for (;; ++steps) {
    const std::string step = body->take();
    EXPECT_LT(step.size(), Body::kStep + kMaxOver);
    all += step;
    if (body->complete()) break;
    EXPECT_GE(step.size(), Body::kStep);
    body->step();
  }
  EXPECT_GE(steps, 3);
  EXPECT_EQ(all, text_of_all(3000));
}

TEST(ALongResponse, CanBeUnpackedAsFarAsItHasCome) {
  Response response = list_of(3000);
  const auto body = Body::begin(asking("gzip"), response);
  ASSERT_NE(body, nullptr);
  EXPECT_NE(std::find(response.headers.begin(), response.headers.end(),
                      std::pair<std::string, std::string>("Content-Encoding", "gzip")),
            response.headers.end());
  Unpacker unpacker;
  std::string all = unpacker.unpack(body->take());
  EXPECT_GE(all.size(), Body::kStep) << "all of the first step";
  while (!body->complete()) {
    body->step();
    all += unpacker.unpack(body->take());
  }
  EXPECT_TRUE(unpacker.complete);
  EXPECT_EQ(all, text_of_all(3000));
  EXPECT_EQ(gzip_contexts_in_use(), 0U) << "given back with the last step";
}

TEST(ALongResponse, GoesUnpackedWhenAllContextsAreLentAndGivesItsOwnBackWhenItsReaderLeaves) {
  std::vector<std::unique_ptr<Body>> under_way;
  for (int i = 0; i < 4; ++i) {
    Response response = list_of(3000);
    under_way.push_back(Body::begin(asking("gzip"), response));
  }
  EXPECT_EQ(gzip_contexts_in_use(), 4U);
  Response response = list_of(3000);
  const auto fifth = Body::begin(asking("gzip"), response);
  EXPECT_EQ(fifth->take().substr(0, 12), "{\n  \"things\"");
  EXPECT_EQ(whole(list_of(0)).headers.size(), response.headers.size()) << "nor does it say that it is packed";
  under_way.clear();
  EXPECT_EQ(gzip_contexts_in_use(), 0U);
}

}  // namespace
}  // namespace carpool::proxy::admin
