// Block: sixteen bytes that are compared at once, by GCC's and clang's vector extension.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace carpool::proxy::http {

using Block = unsigned char __attribute__((vector_size(16)));

inline Block load_block(const char* from) {
  Block bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return bytes;
}

// Returns a block of 0xFF where `bytes` has `c`, and of 0 elsewhere.
inline Block where(Block bytes, char c) {
  return reinterpret_cast<Block>(bytes == static_cast<unsigned char>(c));
}

// Returns the position of the first byte of `mask` that is not 0, or the size of a block.
inline std::size_t first_set(Block mask) {
  static_assert(std::endian::native == std::endian::little, "the lowest byte of a half is the first of its text");
  std::uint64_t halves[2];
  std::memcpy(halves, &mask, sizeof halves);
  if (halves[0] != 0) return static_cast<std::size_t>(std::countr_zero(halves[0])) / 8;
  if (halves[1] != 0) return 8 + static_cast<std::size_t>(std::countr_zero(halves[1])) / 8;
  return sizeof(Block);
}

inline bool any_set(Block mask) {
  std::uint64_t halves[2];
  std::memcpy(halves, &mask, sizeof halves);
  return (halves[0] | halves[1]) != 0;
}

}  // namespace carpool::proxy::http
