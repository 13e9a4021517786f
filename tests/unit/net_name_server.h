// A name server for tests: UDP and TCP on one loopback port, a table, and a count of queries. Runs on the test's own
// loop.
#pragma once

#include <arpa/inet.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/net_support.h"

namespace carpool::proxy::net {

class NameServer {
 public:
  struct Record {
    std::vector<std::string> addresses;  // either family
    std::uint32_t ttl = 60;
    int rcode = 0;      // 3: NXDOMAIN, 2: SERVFAIL
    std::string alias;  // a CNAME first, with the same ttl
  };
  std::map<std::string, Record> table;  // absent: NXDOMAIN
  std::map<std::string, int> asked;     // A queries by name
  bool mute = false;
  bool only_tcp = false;  // UDP answers are truncated to `truncated_to` records
  std::uint32_t truncated_to = 0;
  std::string held = "-";  // responses to names with this prefix wait for release()
  int held_type = 0;       // and so do responses to queries of this type, A or AAAA
  int fails_type = 0;      // queries of this type get SERVFAIL
  int mute_tcp = 0;        // nor do queries of this type over TCP get a response; kAny: of each type
  int tcp_responses = 0;

  explicit NameServer(TurnedLoop& loop) : loop_(loop), udp_(*this), tcp_(*this) {
    exec::assume_on_loop();
    do {  // another process may have this port of UDP
      tcp_.fd = listen_on("127.0.0.1:0");
      at_ = Address::local_of(tcp_.fd.get());
    } while (!bind_udp());
    tcp_.key = *loop_->watch(tcp_.fd.get(), tcp_);
    udp_.key = *loop_->watch(udp_.fd.get(), udp_);
  }
  ~NameServer() {
    exec::assume_on_loop();
    stop_udp();
    stop_tcp();
    for (auto& c : connections_) loop_->unwatch(c->fd.get(), c->key);
  }
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;
  const Address& at() const { return at_; }

  static constexpr int kAny = -1;

  // After stop, datagrams are refused.
  void start_udp() {
    exec::assume_on_loop();
    EXPECT_TRUE(bind_udp());
    udp_.key = *loop_->watch(udp_.fd.get(), udp_);
  }
  void stop_udp() {
    exec::assume_on_loop();
    if (udp_.fd) loop_->unwatch(udp_.fd.get(), udp_.key);
    udp_.fd.reset();
  }
  void stop_tcp() {
    exec::assume_on_loop();
    if (tcp_.fd) loop_->unwatch(tcp_.fd.get(), tcp_.key);
    tcp_.fd.reset();
  }
  std::size_t waiting() const { return waiting_.size(); }
  void release() {
    for (const auto& [response, peer] : waiting_)
      ::sendto(udp_.fd.get(), response.data(), response.size(), 0, peer.get(), peer.length());
    waiting_.clear();
  }

 private:
  bool bind_udp() {
    udp_.fd = Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    return ::bind(udp_.fd.get(), at_.get(), at_.length()) == 0;
  }

  struct Udp final : exec::Watcher {
    explicit Udp(NameServer& s) : server(s) {}
    void on_ready(exec::Ready) override LOOP_ONLY {
      std::array<char, 2048> buffer{};
      sockaddr_storage from{};
      socklen_t size = sizeof from;
      auto* peer = reinterpret_cast<sockaddr*>(&from);
      for (;;) {
        size = sizeof from;
        const auto received = ::recvfrom(fd.get(), buffer.data(), buffer.size(), 0, peer, &size);
        if (received <= 0) return;
        const std::string response =
            server.respond({buffer.data(), static_cast<std::size_t>(received)}, server.only_tcp);
        if (response.empty()) continue;
        const std::string_view name(buffer.data() + 13, static_cast<std::size_t>(received) - 13);
        const int type = buffer[static_cast<std::size_t>(received) - 3];
        if (name.starts_with(server.held) || type == server.held_type) {
          server.waiting_.emplace_back(response, Address(peer, size));
        } else {
          ::sendto(fd.get(), response.data(), response.size(), 0, peer, size);
        }
      }
    }
    NameServer& server;
    Fd fd;
    exec::WatchKey key;
  };
  struct Connection final : exec::Watcher {
    explicit Connection(NameServer& s) : server(s) {}
    void on_ready(exec::Ready) override LOOP_ONLY {
      std::array<char, 2048> buffer{};
      for (ssize_t received; (received = ::recv(fd.get(), buffer.data(), buffer.size(), 0)) > 0;) {
        in.append(buffer.data(), static_cast<std::size_t>(received));
      }
      while (in.size() >= 2 && in.size() >= 2 + length()) {
        const int type = in[length() - 1];
        const std::string response = server.respond(in.substr(2, length()), false);
        in.erase(0, 2 + length());
        if (server.mute_tcp == kAny || server.mute_tcp == type) continue;
        const auto size = htons(static_cast<std::uint16_t>(response.size()));
        // In two parts, so that the resolver must read twice.
        ::send(fd.get(), &size, 2, 0);
        ::send(fd.get(), response.data(), response.size(), 0);
        ++server.tcp_responses;
      }
    }
    std::size_t length() const {
      return static_cast<std::size_t>(static_cast<unsigned char>(in[0]) << 8 | static_cast<unsigned char>(in[1]));
    }
    NameServer& server;
    Fd fd;
    exec::WatchKey key;
    std::string in;
  };
  struct Tcp final : exec::Watcher {
    explicit Tcp(NameServer& s) : server(s) {}
    void on_ready(exec::Ready) override LOOP_ONLY {
      for (int accepted; (accepted = ::accept4(fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        auto connection = std::make_unique<Connection>(server);
        connection->fd = Fd(accepted);
        connection->key = *server.loop_->watch(accepted, *connection);
        server.connections_.push_back(std::move(connection));
      }
    }
    NameServer& server;
    Fd fd;
    exec::WatchKey key;
  };

  static void put(std::string& out, std::uint32_t value, int bytes) {
    for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
  }
  static std::string wire_name(const std::string& name) {
    std::string out;
    for (std::size_t at = 0; at < name.size();) {
      const auto dot = std::min(name.find('.', at), name.size());
      out += static_cast<char>(dot - at);
      out += name.substr(at, dot - at);
      at = dot + 1;
    }
    return out + '\0';
  }

  std::string respond(std::string_view query, bool truncated) {
    std::string name;
    std::size_t at = 12;
    for (; query[at] != 0; at += 1 + static_cast<std::size_t>(query[at])) {
      name += (name.empty() ? "" : ".") + std::string(query.substr(at + 1, static_cast<std::size_t>(query[at])));
    }
    const auto question = query.substr(12, at + 5 - 12);
    const int type = query[at + 2];
    if (type == 1) ++asked[name];
    if (mute) return {};
    const auto found = table.find(name);
    Record record = found == table.end() ? Record{{}, 0, 3, {}} : found->second;
    if (type == fails_type) record = {{}, 0, 2, {}};
    std::string responses;
    std::uint32_t count = 0;
    std::string owner = "\xc0\x0c";  // the question's name
    if (!record.alias.empty()) {
      responses += owner;
      put(responses, 5, 2), put(responses, 1, 2), put(responses, record.ttl, 4);
      owner = wire_name(record.alias);
      put(responses, static_cast<std::uint32_t>(owner.size()), 2);
      responses += owner;
      ++count;
    }
    for (const std::string& text : record.addresses) {
      const auto address = *Address::literal(text, 0);
      if ((address.family() == AF_INET ? 1 : 28) != type) continue;
      if (truncated && count == truncated_to) break;
      responses += owner;
      put(responses, static_cast<std::uint32_t>(type), 2), put(responses, 1, 2), put(responses, record.ttl, 4);
      put(responses, static_cast<std::uint32_t>(address.bytes().size()), 2);
      responses += address.bytes();
      ++count;
    }
    std::string out(query.substr(0, 2));
    put(out, 0x8180U | static_cast<std::uint32_t>(record.rcode) | (truncated ? 0x200U : 0U), 2);
    put(out, 1, 2), put(out, count, 2), put(out, 0, 4);
    out += question;
    return out + responses;
  }

  TurnedLoop& loop_;
  Address at_;
  Udp udp_;
  Tcp tcp_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::pair<std::string, Address>> waiting_;
};

}  // namespace carpool::proxy::net
