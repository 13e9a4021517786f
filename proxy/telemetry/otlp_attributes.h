// Attributes of OTLP (common.proto): a KeyValue with an AnyValue, written in one pass because their sizes are known.
// The bytes before a value are assembled separately and appended in one call, because most of a span is attributes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/assert.h"
#include "base/protobuf.h"
#include "proxy/config/config.h"

namespace carpool::proxy::otlp {

class Attributes {
 public:
  // `field`: number of the attributes field in the enclosing message; at most 15.
  Attributes(ProtobufWriter& out, std::uint32_t field) : out_(out), tag_(tag(field, kBytes)) {
    CARPOOL_ASSERT(field <= 15);
  }

  // Keys are at most config::kMaxAttributeKey bytes long.
  void text(std::string_view key, std::initializer_list<std::string_view> parts) {
    std::size_t size = 0;
    for (const std::string_view part : parts) size += part.size();
    Head head = begin(key, 1 + ProtobufWriter::size_of(size) + size);
    head.byte(tag(kString, kBytes));
    head.varint(size);
    out_.raw(head.view());
    for (const std::string_view part : parts) out_.ascii(part);
  }
  void text(std::string_view key, std::string_view value) { text(key, {value}); }
  void number(std::string_view key, std::uint64_t value) {
    Head head = begin(key, 1 + ProtobufWriter::size_of(value));
    head.byte(tag(kInt, kVarint));
    head.varint(value);
    out_.raw(head.view());
  }
  void real(std::string_view key, double value) {
    Head head = begin(key, 1 + sizeof value);
    head.byte(tag(kDouble, kFixed64));
    out_.raw(head.view());
    out_.little_endian(std::bit_cast<std::uint64_t>(value), sizeof value);
  }

 private:
  static constexpr unsigned kVarint = 0, kFixed64 = 1, kBytes = 2;
  static constexpr std::uint32_t kKey = 1, kValue = 2;                // fields of KeyValue
  static constexpr std::uint32_t kString = 1, kInt = 3, kDouble = 4;  // fields of AnyValue
  static constexpr char tag(std::uint32_t field, unsigned type) { return static_cast<char>(field << 3U | type); }

  class Head {
   public:
    void byte(char c) { bytes_[size_++] = c; }
    void varint(std::uint64_t value) {
      for (; value >= 0x80; value >>= 7U) byte(static_cast<char>((value & 0x7F) | 0x80));
      byte(static_cast<char>(value));
    }
    void text(std::string_view text) { size_ += text.copy(bytes_.data() + size_, text.size()); }
    std::string_view view() const { return {bytes_.data(), size_}; }

   private:
    std::array<char, config::kMaxAttributeKey + 48> bytes_;  // four tags, four varints
    std::size_t size_ = 0;
  };

  Head begin(std::string_view key, std::size_t value_size) const {
    CARPOOL_ASSERT(key.size() <= config::kMaxAttributeKey);
    Head head;
    head.byte(tag_);
    head.varint(2 + ProtobufWriter::size_of(key.size()) + key.size() + ProtobufWriter::size_of(value_size) +
                value_size);
    head.byte(tag(kKey, kBytes));
    head.varint(key.size());
    head.text(key);
    head.byte(tag(kValue, kBytes));
    head.varint(value_size);
    return head;
  }

  ProtobufWriter& out_;
  const char tag_;
};

}  // namespace carpool::proxy::otlp
