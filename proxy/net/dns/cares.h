// Cares: one c-ares channel on a loop: its sockets become watchers, its timeouts one timer. Only proxy/net/dns includes
// this. c-ares calls back through C, so what it calls is noexcept.
#pragma once

#include <ares.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exec/loop.h"
#include "exec/timer.h"
#include "proxy/net/address.h"

namespace carpool::proxy::dns {

// Name servers as resolv.conf has them.
struct CaresOptions {
  std::string resolv_conf;            // the path
  std::string text;                   // what stands there
  std::vector<net::Address> servers;  // instead of those in resolv.conf; empty: none
  bool tcp = false;                   // asks over TCP only; otherwise over UDP only, truncated answers included
};

// Sees what comes before c-ares does.
class CaresObserver {
 public:
  virtual void on_datagram(std::string_view datagram) LOOP_ONLY = 0;
  // Of an answer over TCP, records were taken away: it has less than kMostRecords.
  virtual void on_cut(std::size_t records) LOOP_ONLY = 0;

 protected:
  ~CaresObserver() = default;
};

// Of one answer. c-ares walks along a list for each record and opens a socket to sort each address, so thousands would
// hold the loop up.
inline constexpr std::size_t kMostRecords = 512;

class Cares {
 public:
  Cares(exec::Loop& loop, const CaresOptions& options, CaresObserver& observer);
  // Not from inside a callback of c-ares. Questions that are under way are told ARES_EDESTRUCTION.
  ~Cares();
  Cares(const Cares&) = delete;
  Cares& operator=(const Cares&) = delete;

  int status() const { return status_; }  // ARES_SUCCESS: it may be asked
  ares_channel get() const { return channel_; }
  // After every call that asks: sends what c-ares queued, and asks when it wants to be called again.
  void settle() LOOP_ONLY;

 private:
  struct Socket;
  int open(const CaresOptions& options);
  int use_servers(const std::vector<net::Address>& servers);
  void process(int fd, exec::Ready ready) LOOP_ONLY;
  void on_timer();
  void on_state(int fd, bool readable, bool writable) LOOP_ONLY;
  Socket* find(int fd);
  static void state_changed(void* self, ares_socket_t fd, int readable, int writable) noexcept;
  static const ares_socket_functions kSocketFunctions;
  static ares_ssize_t receive(ares_socket_t fd, void* data, size_t size, int flags, sockaddr* from, socklen_t* length,
                              void* self) noexcept;
  static ares_ssize_t send(ares_socket_t fd, const iovec* parts, int count, void* self) noexcept;

  exec::Loop& loop_;
  CaresObserver& observer_;
  const bool tcp_;
  exec::Timer timer_;
  ares_channel channel_ = nullptr;
  int status_;
  std::vector<std::unique_ptr<Socket>> sockets_;
};

}  // namespace carpool::proxy::dns
