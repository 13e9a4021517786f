#include "tests/explorer/races.h"

#include <algorithm>
#include <cstdio>

#include "tests/explorer/machine.h"

extern "C" const char __executable_start;  // NOLINT: the linker's name

namespace carpool::explore {

void Races::begin_run() {
  ++run_;
  used_.clear();
}

Races::Place* Races::find(std::uintptr_t at) {
  for (std::size_t n = (at * 0x9E3779B97F4A7C15U) >> (64 - kPlaceBits);; n = (n + 1) % kPlaces) {
    Place& place = places_[n % kPlaces];
    if (place.run != run_) {
      if (used_.size() > kPlaces / 2) return nullptr;  // not checked
      place = {};
      place.run = run_;
      place.at = at;
      used_.push_back(at);
    }
    if (place.at == at) return &place;
  }
}

void Races::forget(const void* at, std::size_t size) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  for (const std::uintptr_t one : used_) {
    if (one - begin >= size) continue;
    Place& place = *find(one);
    place.read = place.written = {};
  }
}

const void* Races::one(Place& place, bool write, unsigned thread, const Clock& clock, const void* code) {
  // A thread's own accesses are never later than its clock. Without a branch for each thread the compiler compares all
  // at once.
  bool after_write = false, after_read = false;
  for (unsigned n = 0; n < kMaxThreads; ++n) {
    after_write |= place.written[n] > clock[n];
    after_read |= place.read[n] > clock[n];
  }
  if (after_write) return place.writer;
  if (write && after_read) return place.reader;
  (write ? place.written : place.read)[thread] = clock[thread];
  (write ? place.writer : place.reader) = code;
  return nullptr;
}

const void* Races::access(const void* at, std::size_t size, bool write, unsigned thread, const Clock& clock,
                          const void* code) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  for (std::uintptr_t byte = begin; byte < begin + size; byte += 8) {
    Place* place = find(byte);
    if (place == nullptr) return nullptr;
    if (const void* other = one(*place, write, thread, clock, code)) return other;
  }
  return nullptr;
}

std::string Races::describe(const void* code, const void* other) {
  const auto offset = [](const void* address) {
    return static_cast<unsigned long>(static_cast<const char*>(address) - &__executable_start);
  };
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "a data race: 0x%lx against 0x%lx", offset(code), offset(other));
  return text.data();
}

}  // namespace carpool::explore
