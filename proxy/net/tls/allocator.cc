#include "proxy/net/tls/allocator.h"

#include <openssl/crypto.h>

#include <cstdlib>

#include "base/assert.h"
#include "base/c_allocator.h"

namespace carpool::proxy::tls {
namespace {

// OpenSSL expects null for size 0, from realloc() once the block is freed.
void* allocate(std::size_t size, const char*, int) {
  return size == 0 ? nullptr : c_allocator::allocate(size);
}

void* reallocate(void* block, std::size_t size, const char*, int) {
  if (size != 0) return c_allocator::reallocate(block, size);
  std::free(block);
  return nullptr;
}

void give(void* block, const char*, int) {
  std::free(block);
}

}  // namespace

void use_c_allocator_in_openssl() {
  CARPOOL_ASSERT(CRYPTO_set_mem_functions(&allocate, &reallocate, &give) == 1);
}

}  // namespace carpool::proxy::tls
