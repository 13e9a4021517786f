// Unit tests of Protocol Buffers on the wire.
#include "base/protobuf.h"

#include <gtest/gtest.h>

#include <string>

namespace carpool {
namespace {

using namespace std::string_literals;

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    out.append({"0123456789abcdef"[byte >> 4U], "0123456789abcdef"[byte & 15U]});
  }
  return out;
}

// The examples of the encoding's documentation: 150 in field 1, "testing" in field 2, {1: 150} in field 3.
TEST(AProtobufWriter, WritesTheBytesOfTheSpecificationsExamples) {
  std::string out;
  ProtobufWriter writer(out);
  writer.number(1, 150);
  writer.bytes(2, "testing");
  writer.head(3, 3);
  writer.number(1, 150);
  EXPECT_EQ("0896011207746573746" + "96e671a03089601"s, hex(out));
}

TEST(AProtobufWriter, WritesNumbersOfFixedSizeInLittleEndian) {
  std::string out;
  ProtobufWriter writer(out);
  writer.fixed64(1, 0x0102030405060708);
  writer.fixed32(2, 0x01020304);
  writer.real(3, 1.0);
  EXPECT_EQ(
      "090807060504030201"
      "1504030201"
      "19000000000000f03f",
      hex(out));
}

TEST(AProtobufWriter, WritesTextOfOthersAsAscii) {
  std::string out;
  ProtobufWriter(out).ascii("a\xC3\xA4\xFF/");
  EXPECT_EQ(
      "a??"
      "?/",
      out);
}

TEST(AProtobufWriter, TellsTheSizeOfAVarint) {
  for (const auto& [value, size] :
       {std::pair<std::uint64_t, std::size_t>{0, 1}, {127, 1}, {128, 2}, {16383, 2}, {16384, 3}, {UINT64_MAX, 10}}) {
    std::string out;
    ProtobufWriter(out).number(1, value);
    EXPECT_EQ(size, ProtobufWriter::size_of(value));
    EXPECT_EQ(1 + size, out.size());
  }
}

TEST(AProtobufReader, FindsWhatAWriterWroteInMessagesThatNest) {
  std::string out;
  ProtobufWriter writer(out);
  const std::size_t outer = writer.begin(1);
  writer.number(7, UINT64_MAX);
  const std::size_t inner = writer.begin(2);
  writer.bytes(3, std::string(300, 'x'));
  writer.end(inner);
  writer.end(outer);
  ProtobufReader reader(out);
  const auto first = reader.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(1U, first->number);
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.valid());
  ProtobufReader fields(first->bytes);
  EXPECT_EQ(UINT64_MAX, fields.next()->value);
  const auto nested = fields.next();
  EXPECT_EQ(2U, nested->number);
  EXPECT_EQ(std::string(300, 'x'), ProtobufReader(nested->bytes).next()->bytes);
  EXPECT_TRUE(fields.valid());
}

TEST(AProtobufReader, RefusesWhatIsNoMessage) {
  const std::string endless(11, '\xFF');
  for (const std::string& bytes :
       {"\x0a\x05"
        "abc"s,
        "\x08"s, "\x09\x01"s, "\x15\x01\x02"s, "\x0b"s, "\x00\x01"s, "\x08"s + endless, endless}) {
    ProtobufReader reader(bytes);
    while (reader.next()) {
    }
    EXPECT_FALSE(reader.valid()) << hex(bytes);
  }
}

TEST(AProtobufReader, FindsAnEmptyMessageWhole) {
  ProtobufReader reader({});
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.valid());
}

}  // namespace
}  // namespace carpool
