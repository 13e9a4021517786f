// Cares: one c-ares channel on a loop; its sockets become watchers, its timeouts one timer. Included by proxy/net/dns
// only. c-ares calls back through C, so its callbacks are noexcept.
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

// The name servers and options for one channel.
struct CaresOptions {
  std::string resolv_conf;            // path of resolv.conf
  std::string text;                   // its content
  std::vector<net::Address> servers;  // replace those in resolv.conf, if not empty
  bool tcp = false;                   // query over TCP only; otherwise over UDP only, returning truncated responses
};

// CaresObserver: receives responses before c-ares parses them.
class CaresObserver {
 public:
  virtual void on_datagram(std::string_view datagram) LOOP_ONLY = 0;
  // Called when records were removed from a TCP response; fewer than kMaxRecords remain.
  virtual void on_cut(std::size_t records) LOOP_ONLY = 0;

 protected:
  ~CaresObserver() = default;
};

// Limit per response. For each record c-ares walks a list, and it opens a socket to sort each address, so thousands
// would block the loop.
inline constexpr std::size_t kMaxRecords = 512;

class Cares {
 public:
  Cares(exec::Loop& loop, const CaresOptions& options, CaresObserver& observer);
  // Must not be called from a callback of c-ares. Pending queries end with ARES_EDESTRUCTION.
  ~Cares();
  Cares(const Cares&) = delete;
  Cares& operator=(const Cares&) = delete;

  int status() const { return status_; }  // ARES_SUCCESS: queries are possible
  // Returns the domains that c-ares appends to a name, in lower case and without a trailing dot. Throws std::bad_alloc.
  std::vector<std::string> search_domains() const;
  ares_channel get() const { return channel_; }
  // Must follow each call that starts a query: sends the queued output and schedules the next timeout.
  void flush_and_schedule() LOOP_ONLY;

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
