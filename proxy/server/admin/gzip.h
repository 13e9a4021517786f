// Compresses admin responses with gzip, which reduces a scrape to a tenth. Takes milliseconds, so it must run in the
// background.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "proxy/server/admin/request.h"
#include "proxy/server/admin/response.h"

namespace carpool::proxy::admin {

bool accepts_gzip(const AdminRequest& request);
// Returns true if the client accepts gzip and the body is long enough.
bool should_compress(const AdminRequest& request, const Response& response);
// Compresses the body and sets its header fields. Leaves the response unchanged if zlib has no memory or all contexts
// are in use.
void compress(Response& response);

// Compressor: compresses a long response piece by piece with one context, which its destructor gives back.
class Compressor {
 public:
  Compressor() = default;
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  virtual ~Compressor() = default;
  // Returns the compressed piece, flushed so that the client can decompress everything so far. The last piece ends the
  // stream.
  virtual std::string compress(std::string_view piece, bool last) = 0;
};
// Returns nullptr if zlib has no memory or all contexts are in use.
std::unique_ptr<Compressor> make_compressor();
void set_gzip_headers(Response& response);

// Returns the number of zlib contexts. They are pooled and never exceed four.
std::uint32_t gzip_contexts();
std::uint32_t gzip_contexts_in_use();

}  // namespace carpool::proxy::admin
