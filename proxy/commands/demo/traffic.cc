#include "proxy/commands/demo/traffic.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "proxy/commands/demo/demo_origin.h"
#include "proxy/commands/demo/start_thread.h"

namespace carpool::proxy {
namespace {

constexpr std::string_view kPlain = DemoOrigin::kPlainName;
constexpr std::string_view kTls = DemoOrigin::kTlsName;
constexpr std::string_view kH2 = DemoOrigin::kH2Name;

// The requests of one round. The origin closes a connection once per round, and idle ones after a while.
constexpr std::array kLoadRequests = {LoadRequest{kPlain, "/"},
                                      LoadRequest{kTls, "/", true},
                                      LoadRequest{kPlain, "/bytes/2000"},
                                      LoadRequest{kH2, "/", true},
                                      LoadRequest{kPlain, "/delay/20"},
                                      LoadRequest{kTls, "/bytes/2000", true},
                                      LoadRequest{kPlain, "/echo", false, 500},
                                      LoadRequest{kH2, "/echo", true, 20000},
                                      LoadRequest{kPlain, "/bytes/100000"},
                                      LoadRequest{kH2, "/delay/5", true}};
constexpr std::uint64_t kRoundsPerClose = 8;
constexpr LoadRequest kClose{kPlain, "/close"};
// All clients send together, rarely enough that the extra connections become idle and are closed in between.
constexpr std::uint64_t kTurnsPerBurst = 200;
constexpr LoadRequest kBurst{kPlain, "/delay/100"};

}  // namespace

Result<std::unique_ptr<DemoTraffic>> DemoTraffic::start(const net::Address& proxy, const Settings& settings) {
  Result<StopSignal> stop = StopSignal::make();
  if (!stop) return stop.take_fault();
  auto traffic = std::make_unique<DemoTraffic>(std::move(*stop), proxy, settings);
  Result<std::thread> thread = start_thread("the demo's traffic", [made = traffic.get()] { made->run(); });
  if (!thread) return thread.take_fault();
  traffic->thread_ = std::move(*thread);
  return traffic;
}

DemoTraffic::DemoTraffic(StopSignal stop, const net::Address& proxy, const Settings& settings)
    : settings_(settings), stop_(std::move(stop)) {
  for (std::size_t i = 0; i < settings.clients; ++i) clients_.emplace_back(proxy);
}

DemoTraffic::~DemoTraffic() {
  stop_.raise();
  if (thread_.joinable()) thread_.join();
}

DemoTraffic::Counts DemoTraffic::counts() const {
  const Held lock(mutex_);
  return counts_;
}

void DemoTraffic::run() {
  std::vector<pollfd> polled(clients_.size() + 1);
  Instant next = Clock::now();
  for (;;) {
    polled[0] = {stop_.fd(), POLLIN, 0};
    for (std::size_t i = 0; i < clients_.size(); ++i) polled[i + 1] = clients_[i].interest();
    const int ready = ::poll(polled.data(), polled.size(), milliseconds_until(next));
    if (ready > 0 && polled[0].revents != 0) return;
    for (std::size_t i = 0; ready > 0 && i < clients_.size(); ++i) count(clients_[i].on_events(polled[i + 1].revents));
    const Instant now = Clock::now();
    if (now < next) continue;
    send_next();
    next = std::max(now, next + settings_.pace);  // missed requests are not sent later
  }
}

// Sends nothing while all clients are busy, so that requests never pile up behind a slow proxy.
void DemoTraffic::send_next() {
  if (turn_ % kTurnsPerBurst == kTurnsPerBurst - 1) {
    ++turn_;
    for (LoadClient& client : clients_) send(client, kBurst);
    return;
  }
  const std::size_t place = turn_ % kLoadRequests.size();
  const bool closes = place == 0 && turn_ / kLoadRequests.size() % kRoundsPerClose == kRoundsPerClose - 1;
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    LoadClient& client = clients_[next_client_];
    next_client_ = (next_client_ + 1) % clients_.size();
    if (!client.free()) continue;
    ++turn_;
    return send(client, closes ? kClose : kLoadRequests[place]);
  }
}

void DemoTraffic::send(LoadClient& client, const LoadRequest& load_request) {
  if (client.free()) count(client.send(load_request));
}

void DemoTraffic::count(LoadClient::Outcome outcome) {
  if (outcome == LoadClient::Outcome::none) return;
  const Held lock(mutex_);
  ++(outcome == LoadClient::Outcome::answered ? counts_.answered : counts_.failed);
}

}  // namespace carpool::proxy
