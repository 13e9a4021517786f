// The nine bytes in front of every frame (RFC 9113 §4.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace carpool::proxy::http {

// 31 bits in network order, the reserved one left out.
inline std::uint32_t read_stream_id(std::string_view bytes) {
  std::uint32_t id = 0;
  for (std::size_t i = 0; i < 4; ++i) id = id << 8 | static_cast<unsigned char>(bytes[i]);
  return id & 0x7FFFFFFFU;
}

struct FrameHead {
  static constexpr std::size_t kSize = 9;
  enum Type : std::uint8_t { priority = 2, goaway = 7 };  // those that are looked at

  std::uint32_t length;  // of the payload behind it
  std::uint8_t type;
  std::uint32_t stream;

  // Of at least kSize bytes.
  static FrameHead read(std::string_view bytes) {
    const auto byte = [&](std::size_t at) { return std::uint32_t{static_cast<unsigned char>(bytes[at])}; };
    return {byte(0) << 16 | byte(1) << 8 | byte(2), static_cast<std::uint8_t>(byte(3)),
            read_stream_id(bytes.substr(5))};
  }
};

}  // namespace carpool::proxy::http
