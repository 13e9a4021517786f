// Body: a long answer's body for one reader, made in steps of about 64 KiB and packed as it is made. The next step is
// made when the reader has taken the last one. So a slow reader costs one step, the facts behind the rest and, packed,
// one of gzip's four contexts; for no longer than the patience with which its session waits for it. Meanwhile the
// answers of others go unpacked once all four are lent.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "proxy/server/admin/gzip.h"
#include "proxy/server/admin/request.h"
#include "proxy/server/admin/response.h"

namespace carpool::proxy::admin {

class Body {
 public:
  static constexpr std::size_t kStep = std::size_t{64} * 1024;  // of what is not packed yet

  explicit Body(std::unique_ptr<Pieces> pieces) : pieces_(std::move(pieces)) {}
  // The first step of the answer's pieces, which are its no more. Null: that was all of them, and is the answer's body.
  static std::unique_ptr<Body> begin(const AdminRequest& request, Response& answer);

  void step();                                // makes the next one; takes its time, as begin() does
  std::string take();                         // what was made
  bool complete() const { return !pieces_; }  // there is no other step

 private:
  void gather();

  std::unique_ptr<Pieces> pieces_;
  std::unique_ptr<Packer> packer_;  // null: as it is
  std::string made_;
};

}  // namespace carpool::proxy::admin
