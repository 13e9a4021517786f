#include "proxy/dns/channel.h"

#include <ares.h>
#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <utility>

#include "proxy/dns/resolv_conf.h"
#include "proxy/dns/resolver.h"

namespace carpool::proxy::dns {
namespace {

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Does more stand in this stream socket? c-ares takes a TCP answer in pieces, one per call, and edges come once.
bool more_to_read(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) return false;
  char byte = 0;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

Answer::Kind kind_of(int status, int timeouts) {
  switch (status) {
    case ARES_SUCCESS:
      return Answer::Kind::found;
    case ARES_ENODATA:  // one family's "none" says nothing of the other's, if that one got no answer
      return timeouts > 0 ? Answer::Kind::timed_out : Answer::Kind::absent;
    case ARES_ENOTFOUND:
    case ARES_EBADNAME:
      return Answer::Kind::absent;
    case ARES_ETIMEOUT:
      return Answer::Kind::timed_out;
    default:
      return Answer::Kind::failed;
  }
}

Answer answer_of(int status, int timeouts, const ares_addrinfo* info) {
  Answer answer{kind_of(status, timeouts), {}, {}, ares_strerror(status)};
  if (status != ARES_SUCCESS || info == nullptr) return answer;
  int ttl = INT32_MAX;
  for (const auto* cname = info->cnames; cname != nullptr; cname = cname->next) ttl = std::min(ttl, cname->ttl);
  for (const auto* node = info->nodes; node != nullptr; node = node->ai_next) {
    ttl = std::min(ttl, node->ai_ttl);
    const net::Address address(node->ai_addr, static_cast<socklen_t>(node->ai_addrlen));
    auto& all = answer.addresses;
    if (std::find(all.begin(), all.end(), address) == all.end()) all.push_back(address);
  }
  answer.ttl = std::chrono::seconds(ttl);
  if (answer.addresses.empty()) answer.kind = Answer::Kind::absent;
  return answer;
}

ares_addr_port_node node_of(const net::Address& server) {
  ares_addr_port_node node{};
  node.family = server.family();
  std::memcpy(&node.addr, server.bytes().data(), server.bytes().size());
  node.udp_port = node.tcp_port = server.port();
  return node;
}

}  // namespace

struct Channel::Impl {
  // One of c-ares' sockets.
  struct Socket final : exec::Watcher {
    Socket(Impl& h, int f) : home(h), fd(f) {}
    void on_ready(exec::Ready ready) override LOOP_ONLY { home.process(fd, ready); }
    Impl& home;
    const int fd;
    exec::WatchKey key;
    bool has_output = false;  // c-ares put something into its queue after the last edge
  };

  explicit Impl(exec::Loop& l) : loop(l) {}
  ~Impl() {
    if (channel != nullptr) ares_destroy(channel);
  }
  int open(const Settings& settings);
  int use_servers(const std::vector<net::Address>& servers);
  void process(int fd, exec::Ready ready) LOOP_ONLY;
  void on_timer();
  void settle() LOOP_ONLY;
  void on_state(int fd, bool readable, bool writable) LOOP_ONLY;
  Socket* find(int fd);
  static void state_changed(void* self, ares_socket_t fd, int readable, int writable);
  static void answered(void* lookup, int status, int timeouts, ares_addrinfo* info);

  exec::Loop& loop;
  exec::Timer timer = exec::Timer::bind<&Impl::on_timer>(loop, *this);
  ares_channel channel = nullptr;
  int opened = ARES_ENOTINITIALIZED;
  std::vector<std::unique_ptr<Socket>> sockets;
};

int Channel::Impl::open(const Settings& settings) {
  static std::once_flag once;
  std::call_once(once, [] { ares_library_init(ARES_LIB_INIT_ALL); });
  const ResolvOptions resolv = parse_resolv_options(contents_of(settings.resolv_conf));
  std::string path = settings.resolv_conf, lookups = "fb";
  ares_options options{};
  options.sock_state_cb = state_changed;
  options.sock_state_cb_data = this;
  options.timeout = resolv.timeout_s * 1000;
  options.tries = resolv.attempts;
  options.lookups = lookups.data();  // files, then the name servers
  options.resolvconf_path = path.data();
  const int mask =
      ARES_OPT_SOCK_STATE_CB | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_RESOLVCONF;
  const int status = ares_init_options(&channel, &options, mask);
  if (status != ARES_SUCCESS) channel = nullptr;
  return status != ARES_SUCCESS || settings.servers.empty() ? status : use_servers(settings.servers);
}

int Channel::Impl::use_servers(const std::vector<net::Address>& servers) {
  std::vector<ares_addr_port_node> nodes;
  nodes.reserve(servers.size());
  for (const auto& server : servers) nodes.push_back(node_of(server));
  for (std::size_t i = 1; i < nodes.size(); ++i) nodes[i - 1].next = &nodes[i];
  return ares_set_servers_ports(channel, nodes.data());
}

void Channel::Impl::process(int fd, exec::Ready ready) {
  const bool in = ready.readable || ready.hangup, out = ready.writable || ready.hangup;
  ares_process_fd(channel, in ? fd : ARES_SOCKET_BAD, out ? fd : ARES_SOCKET_BAD);
  while (in && find(fd) != nullptr && more_to_read(fd)) ares_process_fd(channel, fd, ARES_SOCKET_BAD);
  settle();
}

void Channel::Impl::on_timer() {
  exec::assume_on_loop();
  ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  settle();
}

// After every call into c-ares: send what it queued on sockets that have had their edge, and ask when it wants to be
// called again.
void Channel::Impl::settle() {
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    if (!std::exchange(sockets[i]->has_output, false)) continue;
    ares_process_fd(channel, ARES_SOCKET_BAD, sockets[i]->fd);
    i = static_cast<std::size_t>(-1);  // sockets may have come and gone
  }
  timeval buffer{};
  const timeval* left = ares_timeout(channel, nullptr, &buffer);
  if (left == nullptr) return timer.disarm();
  const auto wait = std::chrono::seconds(left->tv_sec) + std::chrono::microseconds(left->tv_usec);
  // c-ares' clock and the loop's are not read together: a little later, never too early.
  timer.arm(loop.now() + wait + std::chrono::milliseconds(1));
}

Channel::Impl::Socket* Channel::Impl::find(int fd) {
  const auto at = std::find_if(sockets.begin(), sockets.end(), [fd](const auto& s) { return s->fd == fd; });
  return at == sockets.end() ? nullptr : at->get();
}

void Channel::Impl::on_state(int fd, bool readable, bool writable) {
  Socket* known = find(fd);
  if (known != nullptr && !readable && !writable) {
    loop.unwatch(fd, known->key);
    std::erase_if(sockets, [fd](const auto& s) { return s->fd == fd; });
    return;
  }
  if (known != nullptr) known->has_output = writable;
  if (known != nullptr || (!readable && !writable)) return;
  auto socket = std::make_unique<Socket>(*this, fd);
  auto key = loop.watch(fd, *socket);
  if (!key) return;  // c-ares' timeout ends the query
  socket->key = *key;
  sockets.push_back(std::move(socket));
}

void Channel::Impl::state_changed(void* self, ares_socket_t fd, int readable, int writable) {
  exec::assume_on_loop();
  static_cast<Impl*>(self)->on_state(fd, readable != 0, writable != 0);
}

void Channel::Impl::answered(void* lookup, int status, int timeouts, ares_addrinfo* info) {
  exec::assume_on_loop();
  Answer answer = answer_of(status, timeouts, info);
  if (info != nullptr) ares_freeaddrinfo(info);
  if (status != ARES_EDESTRUCTION) static_cast<Lookup*>(lookup)->on_answer(std::move(answer));
}

Channel::Channel(exec::Loop& loop, const Settings& settings) : impl_(std::make_unique<Impl>(loop)) {
  impl_->opened = impl_->open(settings);
}
Channel::~Channel() = default;

void Channel::look_up(const std::string& name, Lookup& lookup) {
  if (impl_->opened != ARES_SUCCESS)
    return lookup.on_answer({Answer::Kind::failed, {}, {}, ares_strerror(impl_->opened)});
  ares_addrinfo_hints hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  ares_getaddrinfo(impl_->channel, name.c_str(), nullptr, &hints, Impl::answered, &lookup);
  impl_->settle();
}

}  // namespace carpool::proxy::dns
