// Unit tests of a client context for which OpenSSL has no memory: the attempt may be repeated, and no context trusts a
// part of the authorities only.
#include <openssl/crypto.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "proxy/net/tls/client_context_impl.h"
#include "tests/unit/net_tls_support.h"

#if defined(__SANITIZE_ADDRESS__)
#define CARPOOL_COUNTS_LOST_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CARPOOL_COUNTS_LOST_MEMORY 1
#endif
#endif

namespace carpool::proxy::tls {
namespace {

thread_local std::uint64_t allocations_left = 0;  // until one fails; 0: none fails

bool next_fails() {
  return allocations_left != 0 && --allocations_left == 0;
}
void* allocate_or_fail(std::size_t size, const char*, int) {
  return next_fails() ? nullptr : std::malloc(size);
}
void* reallocate_or_fail(void* block, std::size_t size, const char*, int) {
  if (size != 0) return next_fails() ? nullptr : std::realloc(block, size);
  std::free(block);
  return nullptr;
}
void give_back(void* block, const char*, int) {
  std::free(block);
}
// Before OpenSSL allocates for the first time.
const bool kInstalled = CRYPTO_set_mem_functions(&allocate_or_fail, &reallocate_or_fail, &give_back) == 1;

Result<std::unique_ptr<ClientContext>> make_or_fault(const ClientSettings& settings) {
  try {
    return ClientContext::make(settings);
  } catch (const std::bad_alloc&) {
    return Fault{FaultKind::budget, Side::self, "no memory"};
  }
}

TEST(AClientContext, WithoutMemoryIsMadeLaterAndTrustsAllAuthoritiesOrIsNotMade) {
#ifdef CARPOOL_COUNTS_LOST_MEMORY
  GTEST_SKIP() << "OpenSSL does not free everything when an allocation fails";
#endif
  ASSERT_TRUE(kInstalled);
  const net::TemporaryFile bundle(serve()->certificate_pem() + serve()->certificate_pem() + serve()->certificate_pem());
  ::setenv("SSL_CERT_FILE", bundle.path().c_str(), 1);
  ::setenv("SSL_CERT_DIR", "", 1);
  ClientSettings settings;
  settings.alpn = {"h2"};
  ASSERT_TRUE(ClientContext::make(settings));
  bool failed = true;
  std::uint64_t faults = 0;
  for (std::uint64_t n = 1; failed; ++n) {
    allocations_left = n;
    const auto made = make_or_fault(settings);
    failed = allocations_left == 0;
    allocations_left = 0;
    faults += made ? 0 : 1;
    if (!made) {
      EXPECT_EQ(made.fault().kind, FaultKind::budget) << n << ": " << made.fault().detail;
      continue;
    }
    const STACK_OF(X509_OBJECT)* all = X509_STORE_get0_objects(SSL_CTX_get_cert_store((*made)->impl().context.get()));
    EXPECT_EQ(sk_X509_OBJECT_num(all), 3) << n;
  }
  EXPECT_GT(faults, 10U);
  ::unsetenv("SSL_CERT_FILE");
  ::unsetenv("SSL_CERT_DIR");
}

}  // namespace
}  // namespace carpool::proxy::tls
