// Protocol Buffers on the wire (https://protobuf.dev/programming-guides/encoding/): a writer for messages whose fields
// the caller knows, and a reader that finds fields in bytes from outside. Neither recurses and neither allocates but
// for the writer's string.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/assert.h"

namespace carpool {

class ProtobufWriter {
 public:
  explicit ProtobufWriter(std::string& out) : out_(out) {}

  void number(std::uint32_t field, std::uint64_t value) {
    tag(field, kVarint);
    varint(value);
  }
  void fixed64(std::uint32_t field, std::uint64_t value) {
    tag(field, kFixed64);
    little_endian(value, 8);
  }
  void fixed32(std::uint32_t field, std::uint32_t value) {
    tag(field, kFixed32);
    little_endian(value, 4);
  }
  void real(std::uint32_t field, double value) { fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  void bytes(std::uint32_t field, std::string_view value) {
    head(field, value.size());
    out_.append(value);
  }
  // The tag and the length of a message, a text or packed numbers of this size, whose bytes the caller writes next.
  void head(std::uint32_t field, std::size_t size) {
    tag(field, kBytes);
    varint(size);
  }
  void raw(std::string_view bytes) { out_.append(bytes); }
  // Appends text of other parties: a byte that is not ASCII becomes '?', because one text that is not UTF-8 makes a
  // whole message unreadable.
  void ascii(std::string_view text) {
    const std::size_t at = out_.size();
    out_.append(text);
    for (char* c = out_.data() + at; c != out_.data() + out_.size(); ++c) {
      if (static_cast<std::uint8_t>(*c) >= 0x80) *c = '?';
    }
  }
  void little_endian(std::uint64_t value, unsigned size) {
    std::array<char, 8> bytes;
    for (unsigned i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(value >> (8 * i) & 0xFF);
    out_.append(bytes.data(), size);
  }

  // A message whose size is not known before it is written. Its length takes `kLengthBytes`, some of them padding,
  // which every reader of varints accepts. Messages nest: the last one begun ends first.
  static constexpr unsigned kLengthBytes = 4;
  static constexpr std::size_t kLargest = (std::size_t{1} << (7 * kLengthBytes)) - 1;
  [[nodiscard]] std::size_t begin(std::uint32_t field) {
    tag(field, kBytes);
    out_.append(kLengthBytes, '\0');
    return out_.size();
  }
  void end(std::size_t begun) {
    std::size_t size = out_.size() - begun;
    CARPOOL_ASSERT(size <= kLargest);
    for (unsigned i = kLengthBytes; i > 0; --i, size >>= 7U) {
      out_[begun - i] = static_cast<char>((size & 0x7F) | (i > 1 ? 0x80U : 0U));
    }
  }

  // The bytes that a varint takes.
  static constexpr std::size_t size_of(std::uint64_t value) {
    return value == 0 ? 1 : (static_cast<std::size_t>(std::bit_width(value)) + 6) / 7;
  }

 private:
  friend class ProtobufReader;
  static constexpr std::uint32_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

  void tag(std::uint32_t field, std::uint32_t type) { varint(field << 3U | type); }
  void varint(std::uint64_t value) {
    std::array<char, 10> bytes;
    std::size_t size = 0;
    for (; value >= 0x80; value >>= 7U) bytes[size++] = static_cast<char>((value & 0x7F) | 0x80);
    bytes[size++] = static_cast<char>(value);
    out_.append(bytes.data(), size);
  }

  std::string& out_;
};

// Reads the fields of one message in their order.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : rest_(message) {}

  struct Field {
    std::uint32_t number = 0;
    std::uint64_t value = 0;  // of a varint or a fixed one
    std::string_view bytes;   // of a message, a text or packed numbers
  };
  // Returns the next field, or nothing at the end and after an invalid field; see valid().
  std::optional<Field> next() {
    if (rest_.empty() || malformed_) return std::nullopt;
    Field field;
    const std::uint64_t tag = varint();
    field.number = static_cast<std::uint32_t>(tag >> 3U);
    malformed_ = malformed_ || field.number == 0 || tag >> 3U > kMaxFields;
    switch (tag & 7U) {
      case ProtobufWriter::kVarint:
        field.value = varint();
        break;
      case ProtobufWriter::kFixed64:
        field.value = little_endian(8);
        break;
      case ProtobufWriter::kFixed32:
        field.value = little_endian(4);
        break;
      case ProtobufWriter::kBytes:
        field.bytes = take(varint());
        break;
      default:
        malformed_ = true;
    }
    if (malformed_) return std::nullopt;
    return field;
  }
  // Returns false if the bytes are not a message.
  bool valid() const { return !malformed_; }

 private:
  static constexpr std::uint64_t kMaxFields = (std::uint64_t{1} << 29U) - 1;

  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) {
      malformed_ = true;
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::uint64_t little_endian(unsigned size) {
    std::uint64_t value = 0;
    unsigned shift = 0;
    for (const char c : take(size)) {
      value |= std::uint64_t{static_cast<std::uint8_t>(c)} << shift;
      shift += 8;
    }
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = take(1);
      if (byte.empty()) return 0;
      const auto bits = static_cast<std::uint8_t>(byte.front());
      value |= std::uint64_t{bits & 0x7FU} << shift;
      if (bits < 0x80) return value;
    }
    malformed_ = true;
    return 0;
  }

  std::string_view rest_;
  bool malformed_ = false;
};

}  // namespace carpool
