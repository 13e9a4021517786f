#include "proxy/house.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <utility>

#include "exec/errand.h"
#include "proxy/config/cores.h"
#include "proxy/descriptors.h"
#include "proxy/log/log.h"
#include "proxy/notify.h"

namespace carpool::proxy {

namespace {
constexpr Duration kSweepEvery = std::chrono::milliseconds(500);
constexpr Duration kPatience = std::chrono::seconds(1);  // with tasks that still run when every loop has stopped

// RFC 9110 §7.6.3 lets a proxy hide behind a pseudonym; drawn per process, so that two sidecars in a row are no loop.
std::string draw_pseudonym() {
  std::random_device device;
  char text[20];
  std::snprintf(text, sizeof text, "carpool-%08x", static_cast<unsigned>(device()));
  return text;
}
}  // namespace

House::House(const config::Config& config)
    : config_(std::make_unique<config::Config>(config)),
      in_force_(config_.get()),
      pseudonym_(draw_pseudonym()),
      pool_house_(*this),
      metrics_(std::make_unique<metrics::Registry>(config.workers, config.metrics.max_origins)) {}

Result<std::unique_ptr<House>> House::build(const config::Config& config, std::optional<config::Options> source) {
  raise_descriptor_limit();
  std::unique_ptr<House> house(new House(config));
  std::vector<FileLook> before = look_at(Reloader::files(source, config));
  if (Status opened = house->open(); !opened) return opened.take_fault();
  house->reloader_ = std::make_unique<Reloader>(*house, std::move(source));
  house->reloader_->started(std::move(before));
  exec::assume_on_loop();  // the admin thread has not begun
  house->files_ = std::make_unique<FileWatch>(
      house->admin_->loop(), [](void* self) { static_cast<House*>(self)->reloader_->ask(); }, house.get());
  house->watch_files();
  return house;
}

// In order: rules, origins, loops, doors. Each stands on the ones before.
Status House::open() {
  if (!config_->handover.address.empty()) {
    Result<std::unique_ptr<Inheritance>> inheritance = Inheritance::ask(config_->handover.address);
    if (!inheritance) return inheritance.take_fault();
    inheritance_ = std::move(*inheritance);
  }
  Result<std::unique_ptr<net::RulePolicy>> policy = net::RulePolicy::make(config_->egress);
  if (!policy) return policy.take_fault();
  policy_ = std::move(*policy);
  egress_ = std::make_unique<EgressWitness>(*metrics_);
  policy_->set_witness(*egress_);
  Result<std::unique_ptr<Origins>> origins = Origins::make(*config_, pool_house_, *metrics_);
  if (!origins) return origins.take_fault();
  origins_ = std::move(*origins);
  execution_ = std::make_unique<Execution>(config_->threads, config_->workers + 1, config::granted_cores());
  if (Status started = execution_->start(); !started) return started;
  if (Status made = make_workers(); !made) return made;
  drain_ = std::make_unique<Drain>(*this);
  warm_up_ = std::make_unique<WarmUp>(*this);
  if (Status opened = open_listeners(); !opened) return opened;
  if (Status opened = open_admin(); !opened) return opened;
  return open_handover();
}

Status House::make_workers() {
  const WorkerParts parts{*config_, *execution_, *origins_, *policy_,   *metrics_,     overload_,
                          leaks_,   *this,       *this,     pseudonym_, session_hosts_};
  for (std::uint32_t i = 0; i < config_->workers; ++i) {
    Result<std::unique_ptr<Worker>> worker = Worker::make(parts, static_cast<exec::LoopId>(i));
    if (!worker) return worker.take_fault();
    session_hosts_.push_back(&(*worker)->parts.sessions);
    workers_.push_back(std::move(*worker));
  }
  return Done{};
}

Listener::Parts House::listener_parts() {
  std::vector<ClientAcceptor*> acceptors;
  for (auto& worker : workers_) acceptors.push_back(&worker->parts.clients);
  return {std::move(acceptors), workers_.front()->parts.stats, overload_, origins_->directory()};
}

Status House::open_listeners() {
  exec::assume_on_loop();  // none runs yet
  std::vector<net::Address> own;
  for (const config::Listen& listen : config_->listen) {
    auto listener = std::make_unique<Listener>(listen, listener_parts());
    std::optional<net::Bound> given = inheritance_ ? inheritance_->take("listen", listen.address) : std::nullopt;
    if (given) {
      listener->take(std::move(*given));
    } else if (Status opened = listener->open(); !opened) {
      return opened;
    }
    if (Status started = listener->start(); !started) return started;
    own.push_back(listener->address());
    listeners_.push_back(std::move(listener));
  }
  policy_->set_own_listeners(std::move(own));
  return Done{};
}

Status House::open_admin() {
  admin_ = std::make_unique<AdminServer>(*this);
  if (Status opened = admin_->open(inheritance_.get()); !opened) return opened;
  overload_watch_ = std::make_unique<OverloadWatch>(*this);
  std::vector<net::Address> own;
  for (const net::Address* address : {admin_->address(), admin_->metrics_address()}) {
    if (address != nullptr) own.push_back(*address);
  }
  policy_->set_forbidden(std::move(own));
  return Done{};
}

Status House::open_handover() {
  const std::string& address = config_->handover.address;
  if (address.empty()) return Done{};
  handover_ = std::make_unique<HandoverDoor>(*this);
  std::optional<net::Bound> given = inheritance_ ? inheritance_->take("handover", address) : std::nullopt;
  if (Status opened = handover_->open(address, std::move(given)); !opened) return opened;
  if (inheritance_) inheritance_->teach(*this);
  return Done{};
}

void House::warmed_up() {
  if (!inheritance_) return ready_(*this);
  inheritance_->begin(*this, ready_);
}

void House::watch_files() {
  reloader_->with_files([this](const std::vector<std::string>& files, const Digests& read) LOOP_ONLY {
    if (Status watched = files_->watch(files, read); !watched) log::warn("reload", watched.fault().detail);
  });
}

std::unique_ptr<const config::Config> House::put_in_force(std::unique_ptr<config::Config> fresh) {
  const std::scoped_lock lock(config_mutex_);
  in_force_.store(fresh.get(), std::memory_order_release);
  return std::exchange(config_, std::move(fresh));
}

std::vector<const Listener*> House::change_listeners(ReloadRound& round) {
  std::vector<const Listener*> closed;
  const auto at = [](auto& all, const std::string& address) {
    return std::find_if(all.begin(), all.end(), [&](const auto& l) { return l->settings().address == address; });
  };
  if (!drain_->serving()) return closed;  // no doors open any more
  for (const std::string& address : round.closing) {
    const auto found = at(listeners_, address);
    (*found)->close();
    closed.push_back(found->get());
    closed_listeners_.push_back(std::move(*found));
    listeners_.erase(found);
  }
  for (const config::Listen& listen : round.changing) (*at(listeners_, listen.address))->change(listen);
  for (ListenerChange& change : round.opening) {
    const auto known = at(closed_listeners_, change.settings.address);
    std::unique_ptr<Listener> listener;
    if (known != closed_listeners_.end()) {
      listener = std::move(*known);
      closed_listeners_.erase(known);
      listener->change(change.settings);
    } else {
      listener = std::make_unique<Listener>(change.settings, listener_parts());
    }
    listener->take(std::move(change.bound));
    if (Status started = listener->start(); !started) log::error("reload", started.fault().detail);
    listeners_.push_back(std::move(listener));
  }
  return closed;
}

Result<bool> House::run() {
  exec::Loop& first = workers_.front()->parts.loop;
  sweeper_ = std::make_unique<exec::Timer>(
      first, [](void* self) { static_cast<House*>(self)->sweep(); }, this);
  sweeper_->arm(first.now() + kSweepEvery);
  if (config_->log.sync > Duration::zero()) {
    log_sync_ = std::make_unique<LogSync>(admin_->loop(), *execution_, config_->log.sync);
  }
  heap_trim_ = std::make_unique<HeapTrim>(admin_->loop(), *execution_, overload_);
  exec::assume_on_loop();  // its thread is this one, before it runs
  summary_ = std::make_unique<Summary>(first, view_, config().metrics.summary_interval);
  summary_->start();
  workers_.front()->as_current([this] {
    exec::assume_on_loop();
    warm_up_->start([](House& house) {
      exec::assume_on_loop();
      house.warmed_up();
    });
  });
  return turn_loops();
}

Result<bool> House::turn_loops() {
  std::size_t started = 0;
  const bool admin = admin_->start();
  while (admin && started < workers_.size() && workers_[started]->start()) ++started;
  const bool all = started == workers_.size();
  for (std::size_t i = 0; i < started; ++i) {
    if (!all) workers_[i]->stop();
    workers_[i]->wait_until_stopped();
  }
  admin_->stop();
  const bool ended = execution_->stop(kPatience);
  if (!all) return Fault{FaultKind::internal, Side::self, "no thread for loop " + std::to_string(started)};
  return ended;
}

// Idle connections that are expired or rested too long end here, without traffic.
void House::sweep() {
  exec::assume_on_loop();
  const Instant now = workers_.front()->parts.loop.now();
  origins_->directory().sweep(now);
  reclaimer_.sweep(now);
  sweeper_->arm(now + kSweepEvery);
}

void House::reopen_logs() {
  exec::send(admin_->loop(), [] {
    if (log::reopen()) log::info("house", "log reopened");
  });
}

void House::begin_drain() {
  if (drain_->serving()) notify_supervisor("STOPPING=1");
  drain_->begin();
}

void House::on_warm_dial_ended(const pool::Destination& destination, const Fault* fault) {
  if (warm_up_) warm_up_->dial_ended(destination, fault);
}

void House::on_clients_gone() {
  if (drain_) drain_->on_worker_empty();
}

House::~House() {
  exec::assume_on_loop();  // none runs any more: this thread stands in for each of them
  sweeper_.reset();
  if (inheritance_) inheritance_->stop();
  summary_.reset();
  if (heap_trim_) admin_->loop().drain();  // what their tasks posted
  heap_trim_.reset();
  log_sync_.reset();
  files_.reset();
  handover_.reset();
  if (overload_watch_) overload_watch_->stop();
  admin_.reset();
  warm_up_.reset();
  for (auto& listener : listeners_) listener->close();
  for (auto& worker : workers_) worker->tear_down();
  if (origins_) {
    Worker* first = workers_.empty() ? nullptr : workers_.front().get();
    if (first != nullptr) first->as_current([this, first] { origins_->directory().stop(first->parts.loop.now()); });
  }
  // Grants that were in the mail between loops end only now, when every loop has given back what it had.
  // Streams between loops need an answer and then a close of the session: letters there, back, and there again.
  for (int round = 0; round < 3; ++round) {
    for (auto& worker : workers_) worker->tear_down();
  }
  drain_.reset();
  overload_watch_.reset();
  listeners_.clear();
  closed_listeners_.clear();
  origins_.reset();
  workers_.clear();
  // A house that never ran: its threads have had nothing to do.
  if (execution_) static_cast<void>(execution_->stop(kPatience));
}

}  // namespace carpool::proxy
