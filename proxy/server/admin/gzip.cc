#include "proxy/server/admin/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.h"
#include "pool/core/object_pool.h"
#include "proxy/http/field_name.h"
#include "proxy/http/list_tokens.h"

namespace carpool::proxy::admin {
namespace {

constexpr std::size_t kWorthIt = 4096;
constexpr std::uint32_t kContexts = 4;
constexpr int kGzip = 16 + MAX_WBITS;  // window bits with which zlib uses gzip framing
constexpr std::size_t kFlushed = 64;   // bytes at the end of a flushed block that deflateBound() omits
constexpr int kLevel = 1;              // level 6 makes Prometheus text a fifth smaller and takes three times as long

// Returns true if the field lists gzip and its weight is not zero (RFC 9110 §12.5.3); * stands for codings that are not
// listed.
bool names_gzip(std::string_view field) {
  std::optional<bool> named, any;
  http::ListReader list(field);
  for (std::string_view element; list.next(element);) {
    const std::size_t end = element.find_first_of("; \t");
    const std::string_view coding = element.substr(0, end);
    if (!http::iequals(coding, "gzip") && !http::iequals(coding, "x-gzip") && coding != "*") continue;
    const std::size_t weight = std::min(element.find("q="), element.find("Q="));
    const bool none =
        weight != std::string_view::npos && element.find_first_of("123456789", weight) == std::string_view::npos;
    (coding == "*" ? any : named) = !none;
  }
  return named.value_or(any.value_or(false));
}

// Deflater: zlib's state for one response at a time: 256 KiB, whose creation often costs more than the compression of
// the response.
class Deflater {
 public:
  Deflater() : ready_(deflateInit2(&stream_, kLevel, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK) {}
  ~Deflater() {
    if (ready_) deflateEnd(&stream_);
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  // Resets the state for the next response. Returns false if zlib had no memory for it.
  bool renew() { return ready_ && deflateReset(&stream_) == Z_OK; }

  // Returns all output: with Z_SYNC_FLUSH up to the last byte of `text`, with Z_FINISH to the end of the gzip stream.
  std::string compress(std::string_view text, int flush) {
    std::string compressed(deflateBound(&stream_, text.size()) + kFlushed, '\0');
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream_.avail_in = static_cast<uInt>(text.size());
    std::size_t made = 0;
    for (;;) {
      stream_.next_out = reinterpret_cast<Bytef*>(compressed.data() + made);
      stream_.avail_out = static_cast<uInt>(compressed.size() - made);
      const int result = deflate(&stream_, flush);
      CARPOOL_ASSERT(result != Z_STREAM_ERROR);
      made = compressed.size() - stream_.avail_out;
      if (stream_.avail_out != 0) break;  // otherwise more output may be pending
      compressed.resize(2 * compressed.size());
    }
    compressed.resize(made);
    return compressed;
  }

 private:
  z_stream stream_{};
  const bool ready_;
};

// Renewing: the contexts are in a pool of objects, which in this program otherwise holds connections.
struct Renewing {
  static bool on_acquire(const std::unique_ptr<Deflater>& context) { return context->renew(); }
};
using Contexts = pool::ObjectPool<std::unique_ptr<Deflater>, Renewing>;

Contexts& contexts() {
  static Contexts all({.cap = kContexts});
  return all;
}

class PooledCompressor final : public Compressor {
 public:
  explicit PooledCompressor(Contexts::Handle context) : context_(std::move(context)) {}
  std::string compress(std::string_view piece, bool last) override {
    return (*context_)->compress(piece, last ? Z_FINISH : Z_SYNC_FLUSH);
  }

 private:
  Contexts::Handle context_;
};

}  // namespace

std::uint32_t gzip_contexts() {
  return contexts().in_use();
}

std::uint32_t gzip_contexts_in_use() {
  return contexts().counts().lent;
}

bool accepts_gzip(const AdminRequest& request) {
  return names_gzip(request.accept_encoding);
}

bool should_compress(const AdminRequest& request, const Response& response) {
  return response.body.size() >= kWorthIt && accepts_gzip(request);
}

std::unique_ptr<Compressor> make_compressor() {
  Contexts::Handle context = contexts().acquire_or_make({}, [] { return std::optional(std::make_unique<Deflater>()); });
  return context ? std::make_unique<PooledCompressor>(std::move(context)) : nullptr;
}

void set_gzip_headers(Response& response) {
  response.headers.emplace_back("Content-Encoding", "gzip");
  response.headers.emplace_back("Vary", "Accept-Encoding");
}

void compress(Response& response) {
  const std::unique_ptr<Compressor> compressor = make_compressor();
  if (!compressor) return;
  response.body = compressor->compress(response.body, true);
  set_gzip_headers(response);
}

}  // namespace carpool::proxy::admin
