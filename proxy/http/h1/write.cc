// Writers of the chunked transfer coding.
#include <charconv>

#include "proxy/http/h1/codec.h"

namespace carpool::proxy::http {

void write_chunk_head(std::string& out, std::size_t size) {
  char text[2 * sizeof size + 2];
  char* end = std::to_chars(text, text + sizeof text, size, 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out.append(text, static_cast<std::size_t>(end - text));
}

void write_last_chunk(std::string& out, const Fields& trailers) {
  out.append("0\r\n").append(trailers.lines(0, trailers.size())).append("\r\n");
}

}  // namespace carpool::proxy::http
