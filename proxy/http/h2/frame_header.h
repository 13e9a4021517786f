// FrameHead: the nine-byte header of a frame (RFC 9113 §4.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace carpool::proxy::http {

// Reads 31 bits in network order, without the reserved bit.
inline std::uint32_t read_stream_id(std::string_view bytes) {
  std::uint32_t id = 0;
  for (std::size_t i = 0; i < 4; ++i) id = id << 8 | static_cast<unsigned char>(bytes[i]);
  return id & 0x7FFFFFFFU;
}

struct FrameHead {
  static constexpr std::size_t kSize = 9;
  enum Type : std::uint8_t { headers_frame = 1, priority = 2, goaway = 7 };  // the types that are inspected

  std::uint32_t length;  // of the payload
  std::uint8_t type;
  std::uint32_t stream;

  // `bytes` must have at least kSize bytes.
  static FrameHead read(std::string_view bytes) {
    const auto byte = [&](std::size_t at) { return std::uint32_t{static_cast<unsigned char>(bytes[at])}; };
    return {byte(0) << 16 | byte(1) << 8 | byte(2), static_cast<std::uint8_t>(byte(3)),
            read_stream_id(bytes.substr(5))};
  }
};

}  // namespace carpool::proxy::http
