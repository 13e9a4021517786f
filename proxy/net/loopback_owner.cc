#include "proxy/net/loopback_owner.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "base/fd.h"
#include "base/repeat_interrupted.h"
#include "proxy/net/address.h"

namespace carpool::proxy::net {
namespace {

struct OwnerQuery {
  nlmsghdr header{};
  inet_diag_req_v2 request{};
};

OwnerQuery query_for(const Address& owner, const Address& other) {
  OwnerQuery query;
  query.header.nlmsg_len = sizeof query;
  query.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  query.header.nlmsg_flags = NLM_F_REQUEST;
  inet_diag_req_v2& request = query.request;
  request.sdiag_family = static_cast<__u8>(owner.family());
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_states = ~0U;
  request.id.idiag_sport = htons(owner.port());
  request.id.idiag_dport = htons(other.port());
  std::memcpy(request.id.idiag_src, owner.bytes().data(), owner.bytes().size());
  std::memcpy(request.id.idiag_dst, other.bytes().data(), other.bytes().size());
  request.id.idiag_cookie[0] = request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return query;
}

// `bytes`: the attributes behind the message. Returns its container, if the kernel reports it.
std::uint64_t cgroup_in(const char* bytes, std::size_t size) {
  while (size >= sizeof(rtattr)) {
    rtattr one{};
    std::memcpy(&one, bytes, sizeof one);
    if (one.rta_len < sizeof one || one.rta_len > size) return 0;
    std::uint64_t value = 0;
    if (one.rta_type == INET_DIAG_CGROUP_ID && one.rta_len >= sizeof one + sizeof value) {
      std::memcpy(&value, bytes + sizeof one, sizeof value);
      return value;
    }
    const std::size_t step = RTA_ALIGN(one.rta_len);
    if (step > size) return 0;
    bytes += step;
    size -= step;
  }
  return 0;
}

std::optional<SocketOwner> owner_in(const char* bytes, std::size_t size) {
  nlmsghdr header{};
  inet_diag_msg message{};
  if (size < NLMSG_HDRLEN + sizeof message) return std::nullopt;
  std::memcpy(&header, bytes, sizeof header);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || header.nlmsg_len > size) return std::nullopt;
  std::memcpy(&message, bytes + NLMSG_HDRLEN, sizeof message);
  const std::size_t attributes = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof message);
  SocketOwner owner{message.idiag_uid, message.idiag_inode, 0};
  if (header.nlmsg_len > attributes) owner.cgroup = cgroup_in(bytes + attributes, header.nlmsg_len - attributes);
  return owner.inode == 0 ? std::nullopt : std::optional(owner);  // 0: its process has closed it
}

// KernelQueries: a netlink socket, opened with the first query. The kernel replies before send() returns.
class KernelQueries {
 public:
  std::optional<SocketOwner> owner_of(const Address& owner, const Address& other) {
    OwnerQuery query = query_for(owner, other);
    query.header.nlmsg_seq = ++number_;
    if (!kernel_) kernel_ = Fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
    std::array<char, 4096> reply;  // NOLINT(cppcoreguidelines-pro-type-member-init): recv() fills what is read
    const auto ask = [&] { return ::send(kernel_.get(), &query, sizeof query, 0); };
    if (kernel_ && repeat_interrupted(ask) == sizeof query) {
      const ssize_t received = repeat_interrupted([&] { return ::recv(kernel_.get(), reply.data(), reply.size(), 0); });
      const auto size = static_cast<std::size_t>(received > 0 ? received : 0);
      if (answers(reply.data(), size)) return owner_in(reply.data(), size);
    }
    kernel_ = Fd();  // a late reply must not answer the next query
    return std::nullopt;
  }

 private:
  bool answers(const char* reply, std::size_t size) const {
    nlmsghdr header{};
    if (size < sizeof header) return false;
    std::memcpy(&header, reply, sizeof header);
    return header.nlmsg_seq == number_;
  }
  Fd kernel_;
  std::uint32_t number_ = 0;  // of the last query
};

// Tests the kernel with a listener of this process, which it finds by the listener's address alone.
bool names_a_listener() {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  const Address nobody(reinterpret_cast<const sockaddr*>(&any), sizeof any);
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener || ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) return false;
  return ::listen(listener.get(), 0) == 0 &&
         KernelQueries().owner_of(Address::local_of(listener.get()), nobody).has_value();
}

}  // namespace

bool kernel_names_owners() {
  static const bool supported = names_a_listener();
  return supported;
}

std::optional<SocketOwner> owner_of_peer(int fd) {
  const Address peer = Address::peer_of(fd).unmapped(), local = Address::local_of(fd).unmapped();
  if (!peer.loopback() || peer.family() != local.family() || !kernel_names_owners()) return std::nullopt;
  thread_local KernelQueries queries;  // each new client on loopback asks once
  return queries.owner_of(peer, local);
}

}  // namespace carpool::proxy::net
