// H2Memory: the allocator of nghttp2 for one session; counts, limits, and recycles blocks while the session is active.
#pragma once

#include <array>
#include <cstddef>

namespace carpool::proxy::http {

class H2Memory {
 public:
  explicit H2Memory(std::size_t limit) : limit_(limit) {}
  ~H2Memory();
  H2Memory(const H2Memory&) = delete;
  H2Memory& operator=(const H2Memory&) = delete;

  // Same contract as malloc() and friends; returns nullptr beyond the limit.
  void* allocate(std::size_t size);
  void* resize(void* block, std::size_t size);
  void give(void* block);

  std::size_t in_use() const { return in_use_; }
  std::size_t peak() const { return peak_; }
  bool refused() const { return refused_; }  // the limit was reached
  void trim();                               // frees the blocks kept for reuse

 private:
  struct Header;
  static constexpr std::size_t kClasses = 8;  // size classes of 128 bytes each
  static constexpr std::size_t kKept = 64;    // blocks per class, until the session is idle
  std::size_t limit_;
  std::size_t in_use_ = 0, peak_ = 0;
  bool refused_ = false;
  std::array<Header*, kClasses> free_{};
  std::array<std::size_t, kClasses> kept_{};
};

}  // namespace carpool::proxy::http
