// RequestTable: counts requests by method and status code, without allocation and without an array of every possible
// pair.
//
// An open-addressed table of single words (key and count together), one writer, any number of readers. Origins usually
// cause a dozen pairs; once an origin has filled the table to kMax, further codes count as code="other".
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "metrics/counter.h"

namespace carpool::metrics {

// Unknown methods are `other`: clients never choose a label.
inline constexpr std::array<std::string_view, 10> kMethods{"GET",     "HEAD",  "POST",  "PUT",     "DELETE",
                                                           "OPTIONS", "PATCH", "TRACE", "CONNECT", "other"};
using MethodId = std::uint8_t;  // index into kMethods
MethodId method_id(std::string_view method);

inline constexpr std::uint16_t kNoCode = 0;     // it ended without a status
inline constexpr std::uint16_t kOtherCode = 1;  // not 100..599, or the table is full

class RequestTable {
 public:
  void add(MethodId method, std::uint16_t status) {
    const std::uint64_t key = key_of(method, status);
    std::size_t i = home_of(key);
    for (;; i = (i + 1) % kSlots) {
      const std::uint64_t word = slots_[i].load(std::memory_order_relaxed);
      if (word >> kCountBits == key) return slots_[i].store(word + 1, std::memory_order_relaxed);
      if (word == 0) return insert(i, key, method);
    }
  }
  // Calls visit(method, code or kNoCode/kOtherCode, count). (method, kOtherCode) may occur twice: add them up.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& slot : slots_) {
      const std::uint64_t word = slot.load(std::memory_order_relaxed);
      if (word != 0) visit(method_of(word), code_of(word), word & ((std::uint64_t{1} << kCountBits) - 1));
    }
    for (std::size_t m = 0; m < kMethods.size(); ++m) {
      if (const std::uint64_t n = overflow_[m].read(); n != 0) visit(static_cast<MethodId>(m), kOtherCode, n);
    }
  }

 private:
  static constexpr std::size_t kSlots = 64;
  static constexpr std::size_t kMax = 48;     // keeps probe sequences short and a free slot available
  static constexpr unsigned kCountBits = 48;  // 140 years at 60,000 per second

  static constexpr std::uint64_t key_of(MethodId method, std::uint16_t status) {
    const bool known = status == kNoCode || (status >= 100 && status < 600);
    return (std::uint64_t{method} + 1) << 10 | (known ? status : kOtherCode);
  }
  static constexpr std::size_t home_of(std::uint64_t key) { return key * 0x9E3779B97F4A7C15ULL >> 58; }
  static constexpr MethodId method_of(std::uint64_t word) {
    return static_cast<MethodId>((word >> (kCountBits + 10)) - 1);
  }
  static constexpr std::uint16_t code_of(std::uint64_t word) {
    return static_cast<std::uint16_t>(word >> kCountBits & 1023);
  }
  void insert(std::size_t i, std::uint64_t key, MethodId method) {
    if (used_ == kMax) return overflow_[method].add();
    ++used_;
    slots_[i].store(key << kCountBits | 1, std::memory_order_relaxed);
  }

  std::array<std::atomic<std::uint64_t>, kSlots> slots_{};
  std::array<Cell, kMethods.size()> overflow_;
  std::uint8_t used_ = 0;  // used by the writer only
};

}  // namespace carpool::metrics
