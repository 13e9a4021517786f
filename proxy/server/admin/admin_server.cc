#include "proxy/server/admin/admin_server.h"

#include <utility>

#include "exec/posted_function.h"
#include "proxy/config/in_force.h"
#include "proxy/server/executors.h"

namespace carpool::proxy {

namespace {
constexpr LoopId kAdminLoop = 254;  // no worker has this id
constexpr Duration kEventInterval = std::chrono::seconds(1);
}  // namespace

AdminServer::AdminServer(Executors& executors, const ConfigInForce& config, const admin::AdminView& view,
                         admin::AdminControl& control)
    : executors_(executors), config_(config), view_(view), control_(control) {}

AdminServer::~AdminServer() {
  CARPOOL_ASSERT(!started_);
  if (!loop_) return;
  loop_->drain();
  main_.reset();
  metrics_.reset();
}

Status AdminServer::open(Inherited inherited) {
  Result<std::unique_ptr<exec::UvLoop>> loop = exec::UvLoop::make(kAdminLoop);
  if (!loop) return loop.take_fault();
  loop_ = std::move(*loop);
  driver_ = executors_.make_driver(*loop_, *this, "admin loop");
  sampler_ = std::make_unique<exec::Timer>(*loop_, exec::Bound::to<&AdminServer::sample_history>(*this));
  event_timer_ = std::make_unique<exec::Timer>(*loop_, exec::Bound::to<&AdminServer::broadcast>(*this));
  const config::Config& config = config_.get();
  AdminSessions::Host& host = *this;
  if (config.admin.enabled) {
    main_ = std::make_unique<AdminSessions>(*loop_, host, view_, control_, false);
    const std::string& address = config.admin.address;
    if (Status opened = main_->listener().open(address, std::move(inherited.admin)); !opened) return opened;
  }
  if (!config.metrics.address.empty()) {
    metrics_ = std::make_unique<AdminSessions>(*loop_, host, view_, control_, true);
    const std::string& address = config.metrics.address;
    if (Status opened = metrics_->listener().open(address, std::move(inherited.metrics)); !opened) return opened;
  }
  exec::assume_on_loop();  // its thread has not started
  Result<ListenerIdentity> identity = read_identity(config.admin, nullptr);
  if (!identity) return identity.take_fault();
  set_identity(std::move(*identity));
  if (main_) sampler_->arm(loop_->now());
  const Result<bool> read = read_token();
  return read ? Status(Done{}) : Status(read.fault());
}

void AdminServer::set_identity(ListenerIdentity identity) {
  if (main_) main_->listener().set_identity(std::move(identity));
}

Result<bool> AdminServer::read_token() {
  return main_ ? main_->listener().read_token(config_.get().admin.token_file) : Result<bool>(false);
}

void AdminServer::begin_accepting() {
  for (AdminSessions* const one : {main_.get(), metrics_.get()}) {
    if (one != nullptr) one->listener().begin_accepting();
  }
}

void AdminServer::leave_clients() {
  for (AdminSessions* const one : {main_.get(), metrics_.get()}) {
    if (one != nullptr) one->leave_clients();
  }
}

void AdminServer::on_left(net::SocketUser who) {
  if (main_) main_->listener().on_left(who);
  if (metrics_) metrics_->listener().on_left(who);
}

bool AdminServer::start() {
  started_ = driver_->start();
  return started_;
}

void AdminServer::stop() {
  if (!std::exchange(started_, false)) return;
  exec::send(*loop_, [this]() LOOP_ONLY {
    control_.loops_ended();
    if (main_) main_->poll_awaited();  // the metrics listener has no commands
  });
  driver_->stop();
  driver_->wait_until_stopped();
  ended_ = true;
}

exec::StrategyParts AdminServer::strategy_parts() const {
  return executors_.connection_strategy();
}

void AdminServer::add_strategy(const exec::Strategy& strategy) {
  executors_.add_strategy(strategy);
}

void AdminServer::remove_strategy(const exec::Strategy& strategy) {
  executors_.remove_strategy(strategy);
}

void AdminServer::in_background(exec::TaskPtr task) {
  executors_.execute(std::move(task));
}

metrics::AdminSample AdminServer::sample() const {
  metrics::AdminSample sample;
  const auto add = [&sample](const char* name, const std::unique_ptr<AdminSessions>& sessions) {
    if (!sessions) return;
    sample.connections += sessions->open();
    sample.listeners.push_back({name, sessions->ended_for_others(), sessions->refused()});
    for (std::size_t i = 1; i < http::kH2Abuses; ++i) {
      const auto kind = static_cast<http::H2Abuse>(i);
      sample.abuses.push_back({name, http::h2_abuse_name(kind), sessions->abuses(kind)});
    }
  };
  for (std::size_t i = 0; main_ && i < metrics::kClientHandshakes.size(); ++i) {
    const auto result = static_cast<metrics::ClientHandshake>(i);
    sample.handshakes.push_back({metrics::kClientHandshakes[i], main_->handshakes(result)});
  }
  if (main_) sample.event_listeners = main_->listeners();
  sample.event_renderings = feed_.renderings();
  add("admin", main_);
  add("metrics", metrics_);
  return sample;
}

// The new listener receives the last rendering, which is less than kEventInterval old; the next event is the change
// since then for all. So the pools are rendered once per interval, whatever number of clients come and go. The metrics
// listener has no /events.
void AdminServer::subscribed() {
  if (!event_timer_->armed()) render_events();
  main_->send_event(feed_.greeting());
}

void AdminServer::render_events() {
  feed_.update(view_);
  event_timer_->arm(loop_->now() + kEventInterval);
}

void AdminServer::sample_history() {
  exec::assume_on_loop();
  const Instant now = loop_->now();
  sampler_->arm(now + admin::History::kEvery);
  history_.sample(view_, now);
}

// A listener that has not read the last message is skipped and later receives a full snapshot, so at most one message
// waits per listener.
void AdminServer::broadcast() {
  exec::assume_on_loop();
  if (main_->listeners() == 0) return feed_.clear();
  render_events();
  main_->send_event(feed_.event());
}

}  // namespace carpool::proxy
