// ShareCheck: the oracle of the streams of one HTTP/2 client: a stream with bytes to send and an open window is served
// while the others send.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "proxy/exchange/exchange.h"
#include "tests/sim/data_plane/plane_client.h"

namespace carpool::test {

class ShareCheck {
 public:
  explicit ShareCheck(Account& account) : account_(account) {}

  // Must be called after every turn, with every exchange; then look() with every client.
  void see(const proxy::Exchange& exchange) LOOP_ONLY {
    if (exchange.state() == proxy::ExchangeState::idle) return;
    const RequestRecord* const one = account_.find_token(exchange.request().fields.get(kMarkField));
    if (one != nullptr && !one->tunnels()) relayed_[one] = exchange.info().bytes_out;
  }
  void look(PlaneClient& client) {
    FrameCheck* const frames = client.frames();
    if (frames == nullptr || client.wire.noisy()) return;
    const auto streams = client.streams();
    for (const auto& [id, request] : streams) {
      const auto relayed = relayed_.find(request);
      Turn& last = turns_[request];
      const std::uint64_t sent = frames->data_sent(id), all = frames->data_sent();
      const bool waits = relayed != relayed_.end() && relayed->second > sent && frames->open(id);
      const bool passed_over = waits && last.waits && last.sent == sent;
      last.others = passed_over ? last.others + (all - last.all) : 0;
      if (last.others > kMaxUnwritten + kMaxFrame * (1 + streams.size())) {
        account_.complain(*request, request->token + " waited while other streams of its client sent " +
                                        std::to_string(last.others) + " bytes");
      }
      last = {waits, sent, all, last.others};
    }
  }
  void end_turn() { relayed_.clear(); }

 private:
  static constexpr std::uint64_t kMaxFrame = 16384;           // a frame
  static constexpr std::uint64_t kMaxUnwritten = 128 * 1024;  // in frames that wait for the client's socket
  struct Turn {
    bool waits = false;
    std::uint64_t sent = 0, all = 0, others = 0;
  };

  Account& account_;
  std::map<const RequestRecord*, std::uint64_t> relayed_;  // bytes of the response, in this turn
  std::map<const RequestRecord*, Turn> turns_;
};

}  // namespace carpool::test
