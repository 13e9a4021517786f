// Races: data races on plain memory. The explored code is compiled as for TSan, whose callbacks races.cc defines: each
// plain access comes here and must be ordered, by the model's happens-before, after the conflicting ones of other
// threads. Accesses are identified by their first byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/explorer/memory.h"

namespace carpool::explore {

class Races {
 public:
  using Clock = std::array<std::uint32_t, kMaxThreads>;

  Races() : places_(kPlaces) { used_.reserve(kPlaces); }
  void begin_run();
  // Returns the code of the other access if the two race, otherwise null.
  const void* access(const void* at, std::size_t size, bool write, unsigned thread, const Clock& clock,
                     const void* code);
  // Must be called when memory is freed: its next owner's accesses race with none of before.
  void forget(const void* at, std::size_t size);
  // Offsets in the program, as addr2line takes them.
  static std::string describe(const void* code, const void* other);

 private:
  static constexpr unsigned kPlaceBits = 13;
  static constexpr std::size_t kPlaces = std::size_t{1} << kPlaceBits;
  struct alignas(64) Place {
    std::uint64_t run = 0;
    std::uintptr_t at = 0;
    Clock read{}, written{};
    const void* reader = nullptr;  // the last ones
    const void* writer = nullptr;
  };
  Place* find(std::uintptr_t at);
  const void* one(Place& place, bool write, unsigned thread, const Clock& clock, const void* code);

  std::vector<Place> places_;
  std::uint64_t run_ = 0;
  std::vector<std::uintptr_t> used_;  // the places of this run
};

}  // namespace carpool::explore
