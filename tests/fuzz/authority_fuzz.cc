// authority_fuzz: any bytes as authorities and URIs. A canonical form must read back unchanged, so that no two
// spellings make two pools.
#include "pool/origin.h"
#include "tests/fuzz/strict_head.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace carpool;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const pool::Scheme scheme : {pool::Scheme::http, pool::Scheme::https, pool::Scheme::tcp}) {
    const Result<pool::Origin> origin = pool::canonical_origin(scheme, text);
    if (!origin) continue;
    const Result<pool::Origin> again = pool::canonical_origin(scheme, origin->authority());
    fuzz::must(again && *again == *origin, "canonical is canonical", text);
    fuzz::must(origin->authority().find_first_of(" \r\n/\\@?#") == std::string::npos, "no byte of another part", text);
  }
  if (const Result<pool::Origin> origin = pool::parse_origin(text)) {
    const Result<pool::Origin> again = pool::parse_origin(origin->label());
    fuzz::must(again && *again == *origin, "a label names its origin", text);
  }
  return 0;
}
