#include "proxy/worker.h"

#include <algorithm>
#include <array>
#include <utility>

#include "pool/destination.h"
#include "proxy/downstream/client.h"
#include "proxy/downstream/h2_client.h"
#include "proxy/downstream/listener.h"
#include "proxy/house.h"
#include "proxy/net/plain.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/h2_connection.h"
#include "proxy/upstream/retire.h"

namespace carpool::proxy {

namespace {
// Which worker's loop this thread turns. Set around everything that runs on a loop, never kept across threads.
thread_local Worker* current_worker = nullptr;

// For dumps: each as long as the process.
const char* name_of(exec::LoopId id) {
  static const auto names = [] {
    std::array<std::string, 256> all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = "loop " + std::to_string(i);
    return all;
  }();
  return names[id].c_str();
}

dns::Settings dns_settings(const config::Dns& dns, dns::Events& events) {
  dns::Settings settings;
  settings.events = &events;
  settings.min_ttl = dns.min_ttl;
  settings.max_ttl = dns.max_ttl;
  settings.stale_for = dns.stale_for;
  return settings;
}
}  // namespace

Result<std::unique_ptr<Worker>> Worker::make(House& house, exec::LoopId id) {
  Result<std::unique_ptr<exec::UvLoop>> loop = exec::UvLoop::make(id);
  if (!loop) return loop.take_fault();
  return std::unique_ptr<Worker>(new Worker(house, std::move(*loop)));
}

Worker::Worker(House& house, std::unique_ptr<exec::UvLoop> loop)
    : house_(house),
      loop_(std::move(loop)),
      wake_timer_(exec::Timer::bind<&Worker::wake_due>(*loop_, *this)),
      resolver_(*loop_, dns_settings(house.config().dns, recorder_)),
      router_(house.origins(), house.policy()),
      recorder_(house, *loop_),
      dialer_(*this, resolver_),
      health_check_(*this),
      address_watch_(*this, resolver_),
      leak_watch_(*this),
      driver_(house.execution().drive(*loop_, *this, name_of(loop_->id()))) {
  loop_->set_shared_watcher(this);
}

Worker::~Worker() = default;

Worker& Worker::current() {
  CARPOOL_ASSERT(current_worker != nullptr);
  return *current_worker;
}

void Worker::enter() {
  current_worker = this;
}
void Worker::leave() {
  current_worker = nullptr;
}

bool Worker::start() {
  enter();  // nobody turns the loop yet
  health_check_.start();
  address_watch_.start();
  leak_watch_.start();
  leave();
  return driver_->start();
}

const net::AddressPolicy& Worker::policy() const {
  return house_.policy();
}
std::string_view Worker::pseudonym() const {
  return house_.pseudonym();
}

// ---- clients ----

void Worker::adopt(Listener& listener, int fd, std::string peer) {
  auto client = std::make_unique<Client>(*this, listener, net::make_accepted(fd), std::move(peer));
  if (draining_ || !client->start()) return listener.left();
  ++client_count_;
  recorder_.client_came();
  clients_.push_back(*client.release());  // owned by the list until bury_all()
}

void Worker::promote(Listener& listener, std::unique_ptr<net::Transport> transport, std::string peer,
                     std::string_view bytes) {
  auto client = std::make_unique<H2Client>(*this, listener, std::move(transport), std::move(peer));
  H2Client& started = *client;
  clients_.push_back(*client.release());  // owned by the list until run_deferred()
  if (!started.start(bytes)) return started.end();
  if (draining_) started.drain();
}

void Worker::bury(Downstream& client) {
  client.ListHook<ClientTag>::unlink();
  graves_.push_back(client);
  if (!gravedigger_.linked()) loop_->defer(gravedigger_);
}

void Worker::run_deferred() {
  while (!graves_.empty()) {
    const std::unique_ptr<Downstream> dies(&graves_.pop_front());
    if (dies->owner() == nullptr) continue;
    dies->owner()->left();
    --client_count_;
    recorder_.client_left();
  }
  note_if_empty();
}

void Worker::drain() {
  draining_ = true;
  for (Downstream* client = clients_.next(nullptr); client != nullptr;) {
    Downstream* after = clients_.next(client);
    client->drain();
    client = after;
  }
  note_if_empty();
}

void Worker::part() {
  draining_ = true;
  for (Downstream* client = clients_.next(nullptr); client != nullptr;) {
    Downstream* after = clients_.next(client);
    client->part();
    client = after;
  }
  note_if_empty();
}

bool Worker::sheds(Shedding what) const {
  return house_.overload().sheds(what);
}

void Worker::shed_idle() {
  for (Downstream* client = clients_.next(nullptr); client != nullptr;) {
    Downstream* after = clients_.next(client);
    if (client->end_if_idle()) recorder_.count_shed(metrics::Shed::idle);
    client = after;
  }
}

void Worker::on_reload(const config::Dns& dns, const std::vector<const Listener*>& closed) {
  router_.forget();
  resolver_.set_ttls(dns.min_ttl, dns.max_ttl, dns.stale_for);
  for (Downstream* client = clients_.next(nullptr); client != nullptr;) {
    Downstream* after = clients_.next(client);
    if (std::find(closed.begin(), closed.end(), client->owner()) != closed.end()) client->drain();
    client = after;
  }
}

void Worker::retire_outdated_of(const std::vector<const TlsIdentity*>& renewed) {
  for (const OriginContext* origin : house_.origins().under(renewed)) {
    retire_outdated(*origin->destination, loop_->id(), loop_->now());
  }
}

bool Worker::forget(const std::vector<pool::Destination*>& leaving) {
  const auto leaves = [&](const pool::Destination* one) {
    return std::find(leaving.begin(), leaving.end(), one) != leaving.end();
  };
  router_.forget();
  std::erase_if(to_wake_, [&](const auto& one) { return leaves(one.second); });
  health_check_.forget(leaving);
  address_watch_.forget(leaving);
  return std::any_of(exchanges_.begin(), exchanges_.end(), [&](const std::unique_ptr<Exchange>& exchange) {
    exec::assume_on_loop();
    const OriginContext* origin = exchange->facts().origin;
    return exchange->state() != ExchangeState::resting && origin != nullptr && leaves(origin->destination);
  });
}

void Worker::note_if_empty() {
  if (draining_ && client_count_ == 0 && !empty_.exchange(true, std::memory_order_acq_rel)) house_.on_worker_empty();
}

void Worker::tear_down() {
  enter();
  draining_ = true;
  while (!clients_.empty()) clients_.front().end();
  run_deferred();
  health_check_.stop();
  address_watch_.stop();
  dialer_.stop_waiting();
  loop_->drain();
  dialer_.cancel_all();
  loop_->drain();
  run_deferred();
  leave();
}

// ---- exchanges ----

Exchange& Worker::take_exchange() {
  if (free_exchanges_.empty()) {
    exchanges_.push_back(std::make_unique<Exchange>(*this));
    return *exchanges_.back();
  }
  return free_exchanges_.pop_front();
}

RemoteStream& Worker::take_remote(exec::LoopId far) {
  while (free_remotes_.size() <= far) free_remotes_.push_back(std::make_unique<List<RemoteStream, RemoteStreamTag>>());
  auto& free = *free_remotes_[far];
  if (!free.empty()) return free.pop_front();
  remotes_.push_back(std::make_unique<RemoteStream>(*this, *house_.workers()[far]));
  return *remotes_.back();
}

void Worker::recycle(RemoteStream& stream, exec::LoopId far) {
  free_remotes_[far]->push_front(stream);
}

void Worker::recycle(Exchange& exchange) {
  exchange.tidy();
  free_exchanges_.push_front(exchange);
}

// ---- the pool's mail and its alarms ----

void Worker::deliver(pool::Delivery& delivery) {
  if (deliveries_.push(delivery)) loop_->post(postman_);
}

void Worker::wake_at(pool::Destination& destination, Instant when) {
  to_wake_.emplace_back(when, &destination);
  if (when < wake_timer_.deadline()) wake_timer_.arm(when);
}

void Worker::wake_due() {
  exec::assume_on_loop();
  const Instant now = loop_->now();
  const std::vector<std::pair<Instant, pool::Destination*>> all = std::exchange(to_wake_, {});
  for (const auto& [when, destination] : all) {
    if (when <= now) {
      destination->wake(now);
    } else {
      wake_at(*destination, when);
    }
  }
}

// ---- readiness of pooled connections ----

void Worker::on_shared_ready(std::uint32_t index, std::uint32_t generation, exec::Ready ready) {
  const pool::EventClaim claim = pool::claim_event(index, generation, loop_->id());
  if (claim.kind == pool::EventClaim::Kind::stale) return;
  if (claim.kind == pool::EventClaim::Kind::session) {
    return static_cast<H2Connection&>(*claim.pooled).on_ready(ready);
  }
  auto& connection = static_cast<Connection&>(*claim.pooled);
  connection.transport().note(ready);
  if (claim.kind == pool::EventClaim::Kind::in_use) {
    if (connection.user != nullptr) connection.user->on_upstream_ready();
    return;
  }
  // At rest and won by us: only control records of TLS may come here.
  const bool quiet = !connection.transport().hangup_seen() && connection.transport().quiet();
  const bool in_order = !quiet && connection.transport().ended_in_order();
  pool::end_inspection(index, quiet, pool::Closed::peer_closed, loop_->now(), in_order);
}

}  // namespace carpool::proxy
