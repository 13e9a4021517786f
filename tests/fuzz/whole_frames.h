// whole_frames.h: checks that a session's output is whole frames of an existing type and size (RFC 9113 §4.1, §4.2),
// however its owner cuts the output and whichever streams it resets.
#pragma once

#include <cstddef>
#include <string_view>

#include "tests/fuzz/strict_head.h"

namespace carpool::fuzz {

inline void whole_frames(std::string_view said) {
  constexpr std::size_t kHead = 9, kMax = 16384, kProtocols = 10;
  while (!said.empty()) {
    must(said.size() >= kHead, "a frame's head", said);
    std::size_t size = 0;
    for (std::size_t i = 0; i < 3; ++i) size = size << 8 | static_cast<unsigned char>(said[i]);
    must(static_cast<unsigned char>(said[3]) < kProtocols, "a known frame", said);
    must(size <= kMax && kHead + size <= said.size(), "a frame's payload", said);
    said.remove_prefix(kHead + size);
  }
}

}  // namespace carpool::fuzz
