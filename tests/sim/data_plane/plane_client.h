// PlaneClient: one scripted client of a plan, with its connection to the proxy.
#pragma once

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "tests/sim/data_plane/account.h"
#include "tests/sim/data_plane/frame_check.h"
#include "tests/sim/data_plane/virtual_wire.h"

namespace carpool::test {

class PlaneClient {
 public:
  PlaneClient(const ClientPlan& plan, Account& account, std::size_t room) : wire(room), plan_(plan), account_(account) {
    for (const RequestPlan& one : plan.requests) waiting_.push_back(&account.add(one, this));
  }
  PlaneClient(const PlaneClient&) = delete;
  PlaneClient& operator=(const PlaneClient&) = delete;
  virtual ~PlaneClient() = default;
  void add_noise(const Noise& noise) {
    account_.noisy_clients = true;
    for (RequestRecord* const one : waiting_) one->noise = true;
    wire.noise.push_back(noise);
  }

  // Sends the next request if allowed. Returns true if it acted.
  virtual bool send() = 0;
  virtual bool read(std::size_t most) = 0;
  // Returns a request that has not ended, or null.
  virtual const RequestRecord* open_request() const = 0;

  // The open streams of an HTTP/2 client, with their requests, and what was sent on them.
  virtual std::vector<std::pair<std::uint32_t, const RequestRecord*>> streams() const { return {}; }
  virtual FrameCheck* frames() { return nullptr; }

  // Delivers bytes to the proxy; a client that disconnects resets its connection.
  bool land(std::size_t most) {
    if (over()) return false;
    if (leaving_ && landed_ + most >= plan_.leaves_after) {
      left_ = true;
      wire.reset();
      return true;
    }
    landed_ += std::min(most, wire.flying.size());
    return wire.land(most);
  }
  // Stops reading. Responses are not checked any more.
  bool stopped_reading() const { return plan_.stops_reading != 0 && read_ >= plan_.stops_reading; }
  bool over() const { return left_ || closed_ || wire.gone || (wire.shut && !tunnelled_); }
  bool done() const { return over() || (waiting_.empty() && open_request() == nullptr); }

  VirtualWire wire;

 protected:
  void count_sent(std::size_t size) {
    sent_ += size;
    leaving_ |= plan_.leaves_after != 0 && sent_ >= plan_.leaves_after;
  }
  void count_read(std::size_t size) { read_ += size; }
  // Returns how many of the readable bytes the client reads.
  std::size_t may_read(std::size_t most) const {
    return plan_.stops_reading == 0
               ? most
               : std::min<std::size_t>(most, plan_.stops_reading - std::min<std::uint64_t>(plan_.stops_reading, read_));
  }
  std::uint64_t sent() const { return sent_; }
  // The connection ended, though not by the client. The request must have been answered if the proxy has read what was
  // sent before `end`.
  void check_lost(const RequestRecord& one, std::uint64_t end) {
    if (one.answered || one.tunnels() || wire.broken || end == 0 || wire.heard < end) return;
    if (!account_.may_use_own_connection(one)) account_.complain(one, one.token + " got no response");
  }
  bool left() const { return left_; }
  // Returns true once: when the proxy has closed and everything it sent has been read.
  bool sees_close() {
    if (tunnelled_ && wire.shut && wire.outgoing.empty()) wire.ended = true;
    if (!((wire.shut && !tunnelled_) || wire.gone) || !wire.outgoing.empty() || closed_) return false;
    wire.ended = true;
    return closed_ = true;
  }
  RequestRecord* next() {
    if (waiting_.empty()) return nullptr;
    RequestRecord* const one = waiting_.front();
    waiting_.pop_front();
    return one;
  }
  void ask_first(RequestRecord& one) { waiting_.push_front(&one); }
  void stop_asking() { waiting_.clear(); }
  // The connection has become a tunnel: no further request.
  void become_tunnel() {
    tunnelled_ = true;
    waiting_.clear();
  }
  bool tunnelled() const { return tunnelled_; }
  bool any_waiting() const { return !waiting_.empty(); }

  static constexpr int kWaits = 5;  // opportunities to send, while the client waits for 100 (Continue)

  const ClientPlan& plan_;
  Account& account_;

 private:
  std::deque<RequestRecord*> waiting_;
  std::uint64_t sent_ = 0, landed_ = 0, read_ = 0;
  bool leaving_ = false, left_ = false, closed_ = false, tunnelled_ = false;
};

}  // namespace carpool::test
