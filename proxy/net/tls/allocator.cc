#include "proxy/net/tls/allocator.h"

#include <openssl/crypto.h>

#include <cstdlib>

#include "base/assert.h"
#include "base/c_allocator.h"
#include "proxy/net/tls/record_buffers.h"

namespace carpool::proxy::tls {
namespace {

// OpenSSL may return blocks after the thread's destructors ran: the buffers need none, and closing them refuses more.
constinit thread_local RecordBuffers kept_buffers;
struct CloseAtEnd {
  ~CloseAtEnd() { kept_buffers.close(); }
};

void* allocate_buffer() {
  static thread_local const CloseAtEnd closing;
  static_cast<void>(&closing);
  void* const kept = kept_buffers.take();
  return kept != nullptr ? kept : c_allocator::allocate(RecordBuffers::kBlock);
}

// OpenSSL expects null for size 0, from realloc() once the block is freed.
void* allocate(std::size_t size, const char*, int) {
  if (RecordBuffers::fits(size)) return allocate_buffer();
  return size == 0 ? nullptr : c_allocator::allocate(size);
}

void* reallocate(void* block, std::size_t size, const char*, int) {
  if (size != 0) return c_allocator::reallocate(block, size);
  std::free(block);
  return nullptr;
}

void give(void* block, const char*, int) {
  if (block == nullptr || kept_buffers.keep(block)) return;
  std::free(block);
}

}  // namespace

void use_c_allocator_in_openssl() {
  CARPOOL_ASSERT(CRYPTO_set_mem_functions(&allocate, &reallocate, &give) == 1);
}

}  // namespace carpool::proxy::tls
