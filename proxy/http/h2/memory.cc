#include "proxy/http/h2/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/c_allocator.h"

namespace carpool::proxy::http {

namespace {
constexpr std::size_t kStep = 128;
}

// Precedes every block.
struct alignas(std::max_align_t) H2Memory::Header {
  union {
    std::size_t size;  // of the block without this header; a multiple of kStep if it has a class
    Header* next;      // while the block is on a free list
  };
};

H2Memory::~H2Memory() {
  trim();
}

void* H2Memory::allocate(std::size_t size) {
  const std::size_t index = size == 0 ? 0 : (size - 1) / kStep;
  if (index < kClasses) size = (index + 1) * kStep;
  if (in_use_ + size > limit_) {
    refused_ = true;
    return nullptr;
  }
  Header* header = nullptr;
  if (index < kClasses && free_[index] != nullptr) {
    header = free_[index];
    free_[index] = header->next;
    --kept_[index];
  } else {
    header = static_cast<Header*>(c_allocator::allocate(sizeof(Header) + size));
    if (header == nullptr) return nullptr;
  }
  header->size = size;
  in_use_ += size;
  peak_ = std::max(peak_, in_use_);
  return header + 1;
}

void H2Memory::give(void* block) {
  if (block == nullptr) return;
  Header* header = static_cast<Header*>(block) - 1;
  const std::size_t size = header->size;
  in_use_ -= size;
  const std::size_t index = size / kStep - 1;
  if (size % kStep == 0 && index < kClasses && kept_[index] < kKept) {
    header->next = free_[index];
    free_[index] = header;
    ++kept_[index];
    return;
  }
  std::free(header);  // NOLINT(cppcoreguidelines-no-malloc)
}

void* H2Memory::resize(void* block, std::size_t size) {
  if (block == nullptr) return allocate(size);
  const std::size_t had = (static_cast<Header*>(block) - 1)->size;
  if (size <= had && size > had / 2) return block;
  void* moved = allocate(size);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min(had, size));
  give(block);
  return moved;
}

void H2Memory::trim() {
  for (std::size_t i = 0; i < kClasses; ++i) {
    while (free_[i] != nullptr) {
      Header* header = free_[i];
      free_[i] = header->next;
      std::free(header);  // NOLINT(cppcoreguidelines-no-malloc)
    }
    kept_[i] = 0;
  }
}

}  // namespace carpool::proxy::http
