#include "proxy/admin/gzip.h"

#include <zlib.h>

#include "proxy/http/list.h"

namespace carpool::proxy::admin {
namespace {

constexpr std::size_t kWorthIt = 4096;
constexpr int kGzip = 16 + MAX_WBITS;  // zlib's way to ask for gzip's frame
constexpr int kLevel = 1;              // Prometheus text: level 6 makes it a fifth smaller for three times the time

// RFC 9110 §12.5.3: gzip or *, unless its weight is zero.
bool accepts_gzip(std::string_view field) {
  bool accepted = false;
  http::ListReader list(field);
  for (std::string_view element; list.next(element);) {
    const std::size_t end = element.find_first_of("; \t");
    const std::string_view coding = element.substr(0, end);
    if (coding != "gzip" && coding != "x-gzip" && coding != "*") continue;
    const std::size_t weight = element.find("q=");
    const bool none =
        weight != std::string_view::npos && element.find_first_of("123456789", weight) == std::string_view::npos;
    accepted = coding == "*" ? accepted || !none : !none;
  }
  return accepted;
}

}  // namespace

bool worth_packing(const AdminRequest& request, const Answer& answer) {
  return answer.body.size() >= kWorthIt && accepts_gzip(request.accept_encoding);
}

void pack(Answer& answer) {
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) return;
  std::string packed(deflateBound(&stream, answer.body.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(answer.body.data());
  stream.avail_in = static_cast<uInt>(answer.body.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const bool done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (!done) return;
  answer.body = std::move(packed);
  answer.headers.emplace_back("Content-Encoding", "gzip");
  answer.headers.emplace_back("Vary", "Accept-Encoding");
}

}  // namespace carpool::proxy::admin
