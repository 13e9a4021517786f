// gzip for answers that are worth it: a scrape shrinks to a tenth. Milliseconds of work: for the background.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "proxy/server/admin/request.h"
#include "proxy/server/admin/response.h"

namespace carpool::proxy::admin {

bool accepts_gzip(const AdminRequest& request);
// The client takes gzip, and the body is long enough for it.
bool worth_packing(const AdminRequest& request, const Response& answer);
// The body is gzip from here on, and says so. Unchanged when zlib has no memory, or all contexts are lent.
void compress(Response& answer);

// A long answer on its way through gzip, one context from its first piece to its last; it is given back when this dies.
class Packer {
 public:
  Packer() = default;
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;
  virtual ~Packer() = default;
  // What the client gets of the piece, so that it can unpack everything up to here; with the last one gzip's end.
  virtual std::string compress(std::string_view piece, bool last) = 0;
};
// Null when zlib has no memory, or all contexts are lent.
std::unique_ptr<Packer> make_packer();
void say_packed(Response& answer);

// zlib's contexts that there are: they come from a pool and never exceed four.
std::uint32_t packing_contexts();
std::uint32_t packing_contexts_lent();

}  // namespace carpool::proxy::admin
