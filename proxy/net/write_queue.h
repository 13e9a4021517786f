// WriteQueue: the bytes that one connection's socket did not accept yet. Owns no memory when it is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
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

  std::size_t size() const { return waiting_ == nullptr ? 0 : waiting_->size() - sent_; }
  bool empty() const { return size() == 0; }
  // Returns the allocated size, whatever part of it is in use.
  std::size_t capacity() const { return waiting_ == nullptr ? 0 : waiting_->capacity(); }

  // Sends the waiting bytes, then `batch`; keeps what the socket does not accept and clears the batch. Asserts that no
  // BatchLease of this write queue is active, because its bytes would be overtaken.
  Sent send(net::Transport& transport, WriteBatch& batch);
  Sent flush(net::Transport& transport);
  // Moves at most `most` bytes from `from` through the empty pipe to `transport`, and keeps those that it does not
  // accept. `io`: the result of `from`, as of Transport::read(). Asserts that no bytes wait.
  Sent splice(net::Transport& from, net::Transport& transport, net::Pipe& pipe, std::size_t most, net::IoResult& io);
  // Returns the number of bytes accepted by the socket since the last clear(): 0 proves that nothing was sent.
  std::uint64_t bytes_written() const { return written_; }
  void clear();
  void drop_waiting() { clear_waiting(); }  // they cannot be sent any more
  std::string_view failure() const { return {failure_, failure_size_}; }

 private:
  friend class BatchLease;
  Sent send_text(net::Transport& transport, WriteBatch& batch);
  Sent send_pieces(net::Transport& transport, WriteBatch& batch);
  void keep(const std::vector<iovec>& pieces, std::size_t first, std::size_t done);
  void set_failure(std::string_view detail) {
    failure_ = detail.data();
    failure_size_ = static_cast<std::uint32_t>(detail.size());
  }
  void clear_waiting() {
    sent_ = 0;
    waiting_.reset();
  }
  std::unique_ptr<std::string> waiting_;  // nullptr unless bytes wait: each idle connection has one of these objects
  std::size_t sent_ = 0;                  // bytes of waiting_ already sent
  std::uint64_t written_ = 0;
  const char* failure_ = nullptr;  // a static text
  std::uint32_t failure_size_ = 0;
  bool leased_ = false;  // a BatchLease is active
};

}  // namespace carpool::proxy
