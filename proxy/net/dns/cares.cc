#include "proxy/net/dns/cares.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "base/ascii.h"
#include "base/c_allocator.h"
#include "base/repeat_interrupted.h"
#include "proxy/net/dns/resolv_conf.h"

namespace carpool::proxy::dns {
namespace {

// Returns true if the TCP socket has more data. c-ares reads a TCP response in pieces, one per call, and edges are
// reported once.
bool more_to_read(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) return false;
  char byte = 0;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

// TcpResponses: follows DNS responses over TCP through the pieces that c-ares reads, and reduces their record
// counts.
class TcpResponses {
 public:
  // Returns how many records were removed.
  std::size_t pass(unsigned char* bytes, std::size_t size) {
    std::size_t cut = 0;
    for (std::size_t at = 0; at < size;) {
      if (left_ == 0 || in_length_) {  // two bytes of length precede each response
        left_ = in_length_ ? left_ << 8U | bytes[at] : bytes[at];
        in_length_ = !in_length_;
        position_ = 0;
        ++at;
        continue;
      }
      const std::size_t piece = std::min(size - at, left_);
      if (position_ <= kCount && kCount < position_ + piece) cut += cut_count(bytes[at + kCount - position_]);
      position_ += piece;
      left_ -= piece;
      at += piece;
    }
    return cut;
  }

 private:
  static constexpr std::size_t kCount = 6;  // RFC 1035 §4.1.1: offset of ANCOUNT, high byte first
  // Uses the high byte alone: it is sufficient, and may arrive without the low one.
  static std::size_t cut_count(unsigned char& high) {
    constexpr unsigned char kHighest = (kMaxRecords - 1) >> 8U;
    if (high <= kHighest) return 0;
    const std::size_t cut = static_cast<std::size_t>(high - kHighest) << 8U;
    high = kHighest;
    return cut;
  }
  std::size_t left_ = 0, position_ = 0;
  bool in_length_ = false;  // its first byte was read
};

ares_addr_port_node node_of(const net::Address& server) {
  ares_addr_port_node node{};
  node.family = server.family();
  std::memcpy(&node.addr, server.bytes().data(), server.bytes().size());
  node.udp_port = node.tcp_port = server.port();
  return node;
}

}  // namespace

// Socket: one socket of c-ares.
struct Cares::Socket final : exec::Watcher {
  Socket(Cares& h, int f) : home(h), fd(f) {}
  void on_ready(exec::Ready ready) override LOOP_ONLY { home.process(fd, ready); }
  Cares& home;
  const int fd;
  exec::WatchKey key;
  bool has_output = false;  // c-ares queued output after the last edge
  TcpResponses responses;   // over TCP
};

Cares::Cares(exec::Loop& loop, const CaresOptions& options, CaresObserver& observer)
    : loop_(loop),
      observer_(observer),
      tcp_(options.tcp),
      timer_(exec::Timer::bind<&Cares::on_timer>(loop, *this)),
      status_(open(options)) {}

Cares::~Cares() {
  if (channel_ != nullptr) ares_destroy(channel_);
}

int Cares::open(const CaresOptions& settings) {
  static std::once_flag once;
  std::call_once(once, [] {
    ares_library_init_mem(ARES_LIB_INIT_ALL, &c_allocator::allocate, &std::free, &c_allocator::reallocate);
  });
  const ResolvOptions resolv = parse_resolv_options(settings.text);
  std::string path = settings.resolv_conf, lookups = "fb";
  ares_options options{};
  options.flags = settings.tcp ? ARES_FLAG_USEVC : ARES_FLAG_IGNTC;
  options.sock_state_cb = state_changed;
  options.sock_state_cb_data = this;
  options.timeout = resolv.timeout_s * 1000;
  options.tries = resolv.attempts;
  options.lookups = lookups.data();  // hosts file first, then the name servers
  options.resolvconf_path = path.data();
  const int mask = ARES_OPT_FLAGS | ARES_OPT_SOCK_STATE_CB | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
                   ARES_OPT_RESOLVCONF;
  const int status = ares_init_options(&channel_, &options, mask);
  if (status != ARES_SUCCESS) {
    channel_ = nullptr;
    return status;
  }
  ares_set_socket_functions(channel_, &kSocketFunctions, this);
  return settings.servers.empty() ? status : use_servers(settings.servers);
}

// Asks c-ares, because resolv.conf is not the only source: LOCALDOMAIN and the host's own domain are others.
std::vector<std::string> Cares::search_domains() const {
  struct Saved : ares_options {
    Saved() : ares_options{} {}
    ~Saved() { ares_destroy_options(this); }
    Saved(const Saved&) = delete;
    Saved& operator=(const Saved&) = delete;
  };
  std::vector<std::string> domains;
  if (channel_ == nullptr) return domains;
  Saved saved;
  int mask = 0;
  if (ares_save_options(channel_, &saved, &mask) == ARES_ENOMEM) throw std::bad_alloc();
  for (int i = 0; i < saved.ndomains; ++i) {
    std::string& domain = domains.emplace_back(saved.domains[i]);
    std::transform(domain.begin(), domain.end(), domain.begin(), ascii_lower);
    if (domain.ends_with('.')) domain.pop_back();
  }
  return domains;
}

int Cares::use_servers(const std::vector<net::Address>& servers) {
  std::vector<ares_addr_port_node> nodes;
  nodes.reserve(servers.size());
  for (const auto& server : servers) nodes.push_back(node_of(server));
  for (std::size_t i = 1; i < nodes.size(); ++i) nodes[i - 1].next = &nodes[i];
  return ares_set_servers_ports(channel_, nodes.data());
}

void Cares::process(int fd, exec::Ready ready) {
  const bool in = ready.readable || ready.hangup, out = ready.writable || ready.hangup;
  ares_process_fd(channel_, in ? fd : ARES_SOCKET_BAD, out ? fd : ARES_SOCKET_BAD);
  while (in && find(fd) != nullptr && more_to_read(fd)) ares_process_fd(channel_, fd, ARES_SOCKET_BAD);
  flush_and_schedule();
}

void Cares::on_timer() {
  exec::assume_on_loop();
  ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  flush_and_schedule();
}

// Flushes sockets whose writable edge has already been reported.
void Cares::flush_and_schedule() {
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    if (!std::exchange(sockets_[i]->has_output, false)) continue;
    ares_process_fd(channel_, ARES_SOCKET_BAD, sockets_[i]->fd);
    i = static_cast<std::size_t>(-1);  // the set of sockets may have changed
  }
  timeval buffer{};
  const timeval* left = ares_timeout(channel_, nullptr, &buffer);
  if (left == nullptr) return timer_.disarm();
  const auto wait = std::chrono::seconds(left->tv_sec) + std::chrono::microseconds(left->tv_usec);
  // The clocks of c-ares and of the loop are read at different times: a late timer is harmless, an early one is not.
  timer_.arm(loop_.now() + wait + std::chrono::milliseconds(1));
}

Cares::Socket* Cares::find(int fd) {
  const auto at = std::find_if(sockets_.begin(), sockets_.end(), [fd](const auto& s) { return s->fd == fd; });
  return at == sockets_.end() ? nullptr : at->get();
}

void Cares::on_state(int fd, bool readable, bool writable) {
  Socket* known = find(fd);
  if (known != nullptr && !readable && !writable) {
    loop_.unwatch(fd, known->key);
    std::erase_if(sockets_, [fd](const auto& s) { return s->fd == fd; });
    return;
  }
  if (known != nullptr) known->has_output = writable;
  if (known != nullptr || (!readable && !writable)) return;
  auto socket = std::make_unique<Socket>(*this, fd);
  auto key = loop_.watch(fd, *socket);
  if (!key) return;  // the timeout of c-ares ends the query
  socket->key = *key;
  sockets_.push_back(std::move(socket));
}

void Cares::state_changed(void* self, ares_socket_t fd, int readable, int writable) noexcept {
  exec::assume_on_loop();
  static_cast<Cares*>(self)->on_state(fd, readable != 0, writable != 0);
}

ares_ssize_t Cares::receive(ares_socket_t fd, void* data, size_t size, int flags, sockaddr* from, socklen_t* length,
                            void* self) noexcept {
  exec::assume_on_loop();
  const ssize_t received = repeat_interrupted([&] { return ::recvfrom(fd, data, size, flags, from, length); });
  if (received <= 0) return received;
  Cares& home = *static_cast<Cares*>(self);
  const auto bytes = static_cast<std::size_t>(received);
  Socket* socket = home.tcp_ ? home.find(fd) : nullptr;
  if (!home.tcp_) {
    home.observer_.on_datagram({static_cast<const char*>(data), bytes});
  } else if (socket != nullptr) {
    const std::size_t cut = socket->responses.pass(static_cast<unsigned char*>(data), bytes);
    if (cut > 0) home.observer_.on_cut(cut);
  }
  return received;
}

// UDP: ECONNREFUSED belongs to an earlier datagram and is reported once; the current one has not been sent then.
ares_ssize_t Cares::send(ares_socket_t fd, const iovec* parts, int count, void* self) noexcept {
  const auto write = [&] { return ::writev(fd, parts, count); };
  const ssize_t sent = repeat_interrupted(write);
  if (sent >= 0 || errno != ECONNREFUSED || static_cast<Cares*>(self)->tcp_) return sent;
  return repeat_interrupted(write);
}

const ares_socket_functions Cares::kSocketFunctions{
    [](int family, int type, int protocol, void*) {
      return ::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    },
    [](ares_socket_t fd, void*) { return ::close(fd); },
    [](ares_socket_t fd, const sockaddr* address, socklen_t length, void*) { return ::connect(fd, address, length); },
    Cares::receive,
    Cares::send,
};

}  // namespace carpool::proxy::dns
