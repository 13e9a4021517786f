// VirtualWire: a connection in memory between the proxy and a scripted peer. Bytes in flight arrive in pieces that the
// history chooses; a reset destroys them. At most `room` bytes that the peer has not read are pending in the other
// direction.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "proxy/net/transport.h"
#include "tests/sim/copied_splice.h"
#include "tests/sim/data_plane/held_memory.h"

namespace carpool::test {

// Noise: from `at` on, `drop` bytes of the peer are omitted and `repeat` others inserted.
struct Noise {
  std::uint64_t at = 0;
  std::uint32_t drop = 0, byte = 0, repeat = 0;
};

// Observes the bytes between the proxy and the wire.
class WireObserver {
 public:
  virtual void came(std::string_view bytes) = 0;  // read by the proxy
  virtual void sent(std::string_view bytes) = 0;  // written by it

 protected:
  ~WireObserver() = default;
};

struct VirtualWire {
  explicit VirtualWire(std::size_t most) : room(most) {
    static int last = -1;
    fd = --last;
  }
  // Delivers bytes of the peer. Returns true if there were any.
  bool land(std::size_t most) {
    std::size_t size = std::min(most, flying.size());
    if (flying.size() - size <= glued) size = flying.size();
    if (size == flying.size()) glued = 0;
    if (noise.empty()) {
      arrived.append(flying, 0, size);
    } else {
      arrive_noisy(size);
    }
    flying.erase(0, size);
    landed += size;
    const bool end = ended && flying.empty() && !end_told;
    end_told |= end;
    event |= size != 0 || end;
    return size != 0 || end;
  }
  void arrive_noisy(std::size_t size) {
    for (std::size_t n = 0; n < size; ++n) {
      for (const Noise& one : noise) {
        if (one.at != landed + n) continue;
        dropped = one.drop;
        arrived.append(one.repeat, static_cast<char>(one.byte));
      }
      if (dropped == 0) arrived.push_back(flying[n]);
      dropped -= dropped != 0 ? 1 : 0;
    }
  }
  bool noisy() const { return !noise.empty(); }
  // A session on it ends.
  bool failed() const { return broken || malformed_end; }
  void reset() {
    flying.clear();
    arrived.clear();
    broken = ended = end_told = event = true;
  }
  // The proxy registers its interest in a socket that may be ready.
  void report_readiness() { event |= !arrived.empty() || end_told || broken; }
  // The peer reads.
  std::string take(std::size_t most) {
    std::string bytes = outgoing.substr(0, most);
    outgoing.erase(0, bytes.size());
    if (full && !bytes.empty()) {
      full = false;
      event = true;
    }
    return bytes;
  }
  proxy::net::Io state() const {
    if (broken) return proxy::net::Io::failed;
    return end_told ? proxy::net::Io::eof : proxy::net::Io::would_block;
  }

  int fd;            // no descriptor of the process
  std::string host;  // of the origin
  std::size_t room;
  std::string flying, arrived;  // of the peer
  std::string outgoing;         // of the proxy
  // The last bytes of `flying` that arrive together with the byte before them: on their own, the reader could not tell
  // them from the response to the next request.
  std::size_t glued = 0;
  std::uint64_t consumed = 0;  // bytes that the proxy has read
  std::uint64_t heard = 0;     // before it sent FIN
  std::vector<Noise> noise;    // in what the peer sends
  std::uint64_t landed = 0;
  std::uint32_t dropped = 0;
  bool ended = false;          // the peer sends nothing after the bytes in flight
  bool end_told = false;       // its FIN arrived
  bool broken = false;         // the peer reset it
  bool answered = false;       // a session: the peer has begun a response
  bool malformed_end = false;  // the peer violated the protocol, so the proxy may close the connection
  bool full = false;           // the proxy could not write everything
  bool event = false;          // readiness that the proxy's loop has not handled
  bool shut = false;           // the proxy sent FIN
  bool gone = false;           // the proxy closed it
  bool drained = false;        // the proxy was told to let its client go
  bool cut = false;            // by a reset
  WireObserver* observer = nullptr;
  const Instant* clock = nullptr;      // of a wire to an origin
  Instant opened{};                    // when the proxy got it
  std::optional<Instant> first_write;  // by the proxy
};

class VirtualTransport final : public proxy::net::Transport {
 public:
  explicit VirtualTransport(VirtualWire& wire) : Transport(Fd(wire.fd)), wire_(wire) {
    if (wire.clock != nullptr) wire.opened = *wire.clock;
  }
  ~VirtualTransport() override {
    wire_.gone = true;
    wire_.cut = cut_;
  }
  proxy::net::IoResult read(std::span<char> into) override {
    if (wire_.broken) return {proxy::net::Io::failed, 0, ECONNRESET, "reset"};
    const std::size_t size = std::min(into.size(), wire_.arrived.size());
    if (size == 0) {
      readable_ = false;
      return {wire_.state(), 0, 0, {}};
    }
    const HeldMemory::Peer peer;
    std::memcpy(into.data(), wire_.arrived.data(), size);
    if (wire_.observer != nullptr) wire_.observer->came({into.data(), size});
    wire_.arrived.erase(0, size);
    wire_.consumed += size;
    if (!wire_.shut) wire_.heard = wire_.consumed;
    return {proxy::net::Io::ok, size, 0, {}};
  }
  proxy::net::IoResult write(std::span<const iovec> from) override {
    if (wire_.broken) return {proxy::net::Io::failed, 0, EPIPE, "broken"};
    const HeldMemory::Peer peer;
    std::size_t wanted = 0, taken = 0;
    for (const iovec& piece : from) {
      const std::size_t room = wire_.room - std::min(wire_.room, wire_.outgoing.size());
      const std::size_t size = std::min(room, piece.iov_len);
      const std::string_view bytes(static_cast<const char*>(piece.iov_base), size);
      wire_.outgoing.append(bytes);
      if (wire_.observer != nullptr && size != 0) wire_.observer->sent(bytes);
      wanted += piece.iov_len;
      taken += size;
    }
    writable_ = taken == wanted;
    wire_.full = !writable_;
    if (taken == 0) return {};
    if (wire_.clock != nullptr && !wire_.first_write) wire_.first_write = *wire_.clock;
    return {proxy::net::Io::ok, taken, 0, {}};
  }
  // Two of three wires are those of plain sockets, the others are like TLS.
  bool splices() const override { return wire_.fd % 3 != 0; }
  proxy::net::IoResult splice_to(proxy::net::Pipe& pipe, std::size_t most) override {
    return copied_splice_to(*this, pipe, most);
  }
  proxy::net::IoResult splice_from(proxy::net::Pipe& pipe) override { return copied_splice_from(*this, pipe); }
  void shut_write() override { wire_.shut = true; }
  bool no_data_pending() override { return wire_.arrived.empty() && !wire_.end_told; }
  int take_error() override { return wire_.broken ? ECONNRESET : 0; }
  bool ended_in_order() override { return wire_.end_told && !wire_.broken && wire_.arrived.empty(); }

 private:
  VirtualWire& wire_;
};

}  // namespace carpool::test
