// WriteQueue: the bytes that one connection's socket did not accept yet. Owns no memory when it is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "proxy/net/io_limits.h"
#include "proxy/net/transport.h"
#include "proxy/net/write_batch.h"

namespace carpool::proxy {

class WriteQueue {
 public:
  enum class Sent : std::uint8_t { all, part, failed };

  WriteQueue() = default;
  WriteQueue(const WriteQueue&) = delete;
  WriteQueue& operator=(const WriteQueue&) = delete;
  ~WriteQueue() { CARPOOL_ASSERT(!leased_); }

  std::size_t size() const { return waiting_.size() - sent_; }
  bool empty() const { return size() == 0; }
  std::size_t capacity() const { return waiting_.capacity(); }  // allocated size, whatever part of it is in use

  // Sends the waiting bytes, then `batch`; keeps what the socket does not accept and clears the batch. Asserts that no
  // BatchLease of this write queue is active, because its bytes would be overtaken.
  Sent send(net::Transport& transport, WriteBatch& batch);
  Sent flush(net::Transport& transport);
  // Returns the number of bytes accepted by the socket since the last clear(): 0 proves that nothing was sent.
  std::uint64_t bytes_written() const { return taken_; }
  void clear();
  void drop_waiting() { clear_waiting(); }  // they cannot be sent any more
  std::string_view failure() const { return failure_; }

 private:
  friend class BatchLease;
  Sent send_text(net::Transport& transport, WriteBatch& batch);
  Sent send_pieces(net::Transport& transport, WriteBatch& batch);
  void keep(const std::vector<iovec>& pieces, std::size_t first, std::size_t done);
  void clear_waiting();
  std::string waiting_;
  std::size_t sent_ = 0;  // bytes of waiting_ already sent
  std::uint64_t taken_ = 0;
  std::string_view failure_;
  bool leased_ = false;  // a BatchLease is active
};

}  // namespace carpool::proxy
