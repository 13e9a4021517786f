// Pipe: a pipe of the kernel through which bytes go from one socket to another without a copy in the process. It holds
// bytes only during a call: what the second socket does not accept is copied out.
//
// PipeStore: the pipe of one loop. It is opened when the first body needs it and closed when none has used it for a
// while. PipeLease: its use within one call; a pipe that still holds bytes at the end of it, because an exception ended
// the call, is closed, so that the bytes reach no other connection.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/fd.h"

namespace carpool::proxy::net {

class Pipe {
 public:
  static constexpr std::size_t kCapacity = std::size_t{64} * 1024;  // that of a new pipe; small pieces fill it earlier

  static std::optional<Pipe> open();  // empty if the system gives no pipe; errno says why

  std::size_t held() const { return held_; }
  bool empty() const { return held_ == 0; }
  // Moves at most `most` bytes from the socket. Asserts that the pipe is empty, so that EAGAIN can only mean that the
  // socket is. The result and errno are those of splice(); 0: the peer sent FIN.
  ssize_t fill(int socket, std::size_t most);
  // Moves the bytes to the socket, which may accept a part. The result and errno are those of splice().
  ssize_t drain(int socket);
  // Copies `bytes`, which fit into it, behind those that it holds.
  void put(std::string_view bytes);
  // Copies the bytes out.
  std::string take();

 private:
  Pipe(Fd out, Fd in) : out_(std::move(out)), in_(std::move(in)) {}
  Fd out_, in_;
  std::size_t held_ = 0;
};

// Returns true for an errno that says that the system cannot splice these sockets, and nothing about their peers.
bool cannot_splice(int error);

class PipeStore {
 public:
  // Returns false while the system gives no pipe or cannot splice; the next sweep allows another try.
  bool available() const { return !refused_; }
  void refuse() { refused_ = true; }
  // Closes the pipe if it was not used since the last sweep. Returns true if it is open still.
  bool sweep() {
    if (!used_) pipe_.reset();
    used_ = refused_ = false;
    return pipe_.has_value();
  }

 private:
  friend class PipeLease;
  std::optional<Pipe> pipe_;
  bool lent_ = false;
  bool used_ = false;
  bool refused_ = false;
};

class PipeLease {
 public:
  explicit PipeLease(PipeStore& store) : store_(store) {
    CARPOOL_ASSERT(!store.lent_);
    if (!store.pipe_) store.pipe_ = Pipe::open();
    if (!store.pipe_) {
      store.refuse();
      return;
    }
    CARPOOL_ASSERT(store.pipe_->empty());
    store.lent_ = store.used_ = true;
  }
  PipeLease(const PipeLease&) = delete;
  PipeLease& operator=(const PipeLease&) = delete;
  ~PipeLease() {
    if (store_.pipe_ && !store_.pipe_->empty()) store_.pipe_.reset();
    store_.lent_ = false;
  }

  explicit operator bool() const { return store_.pipe_.has_value(); }  // false: the system gives no pipe
  Pipe& operator*() { return *store_.pipe_; }

 private:
  PipeStore& store_;
};

}  // namespace carpool::proxy::net
