#include "proxy/server/server.h"

#include <random>
#include <utility>

#include "pool/directory/directory.h"
#include "proxy/config/cores.h"
#include "proxy/http/pseudonym.h"
#include "proxy/net/loopback_owner.h"
#include "proxy/server/otlp/otlp_exporter.h"
#include "proxy/server/untracked_watch.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/fd_budget.h"

namespace carpool::proxy {

namespace {
// The pseudonym differs per process, so that two sidecars in a row are not mistaken for a loop.
std::uint32_t draw() {
  return std::random_device()();
}
}  // namespace

Server::Server(const config::Config& config)
    : config_(config),
      pseudonym_(http::draw_pseudonym(draw)),
      metrics_(std::make_unique<metrics::Registry>(config.workers, config.metrics.max_origins)) {}

Result<std::unique_ptr<Server>> Server::build(const config::Config& config, std::optional<config::Options> source) {
  raise_descriptor_limit();
  std::unique_ptr<Server> server(new Server(config));
  std::vector<FileSnapshot> before = take_snapshots(Reloader::files(source, config));
  if (Status opened = server->open(); !opened) return opened.take_fault();
  server->make_reloader(std::move(source), std::move(before));
  return server;
}

// Builds in this order: rules, origins, loops, listeners. Each depends on those before.
Status Server::open() {
  const config::Config& config = config_.get();
  if (!config.handover.address.empty()) {
    Result<std::unique_ptr<HandoverClient>> handover_client = HandoverClient::ask(config.handover.address);
    if (!handover_client) return handover_client.take_fault();
    handover_client_ = std::move(*handover_client);
  }
  Result<std::unique_ptr<net::EgressPolicy>> policy = net::EgressPolicy::make(config.egress);
  if (!policy) return policy.take_fault();
  policy_ = std::move(*policy);
  Result<std::unique_ptr<OriginRegistry>> origins = config_.with_mutable(
      [this](config::Config& own) { return OriginRegistry::make(own, pool_environment_, *metrics_); });
  if (!origins) return origins.take_fault();
  origins_ = std::move(*origins);
  pool_environment_.set_origins(*origins_, *metrics_);
  credential_files_ = std::make_unique<CredentialFiles>(*origins_, *metrics_);
  Result<InterceptLeaves::Plan> leaves = intercept_leaves_.prepare(config);
  if (!leaves) return leaves.take_fault();
  intercept_leaves_.apply(std::move(*leaves));
  executors_ = std::make_unique<Executors>(config.threads, config.workers + 1, config::granted_cores());
  if (Status started = executors_->start(); !started) return started;
  if (Status made = make_workers(); !made) return made;
  tokens_ = std::make_unique<TokenKeepers>(workers_.front()->parts.exchange_context, workers_);
  drain_ = std::make_unique<Drain>(first_loop(), static_cast<Drain::Host&>(*this));
  warm_up_ = std::make_unique<WarmUp>(first_loop(), *origins_, config_, static_cast<WarmUp::Host&>(*this));
  idle_pool_reaper_ = std::make_unique<IdlePoolReaper>(*origins_, workers_, config_);
  if (Status opened = open_listeners(); !opened) return opened;
  if (Status opened = open_admin(); !opened) return opened;
  return open_handover();
}

Status Server::make_workers() {
  const config::Config& config = config_.get();
  const WorkerParts parts{config,      *executors_, *origins_, *policy_,   *metrics_,  overload_,   leaks_,
                          intercepts_, *this,       *this,     pseudonym_, processes_, h2_contexts_};
  for (std::uint32_t i = 0; i < config.workers; ++i) {
    Result<std::unique_ptr<Worker>> worker = Worker::make(parts, static_cast<LoopId>(i));
    if (!worker) return worker.take_fault();
    h2_contexts_.push_back(&(*worker)->parts.sessions);
    workers_.push_back(std::move(*worker));
  }
  return Done{};
}

Listener::Parts Server::listener_parts() {
  std::vector<ClientAcceptor*> acceptors;
  for (auto& worker : workers_) acceptors.push_back(&worker->parts.clients);
  return {std::move(acceptors), &workers_.front()->parts.stats, &overload_, &origins_->directory()};
}

std::optional<net::Bound> Server::inherited(std::string_view role, const std::string& address) {
  return handover_client_ ? handover_client_->take(role, address) : std::nullopt;
}

Status Server::open_listeners() {
  exec::assume_on_loop();  // no loop runs yet
  if (!net::kernel_names_owners()) {
    log::info("server",
              "the kernel does not name the owners of sockets on loopback (sock_diag): each connection there counts as "
              "one client");
  }
  listeners_.set_parts(listener_parts());
  for (const config::Listen& listen : config_.get().listen) {
    if (Status opened = listeners_.open(listen, inherited("listen", listen.name())); !opened) return opened;
  }
  std::vector<net::Address> own;
  for (const auto& listener : listeners()) own.push_back(listener->address());
  policy_->set_own_listeners(std::move(own));
  return Done{};
}

Status Server::open_admin() {
  const config::Config& config = config_.get();
  view_ = std::make_unique<ServerAdminView>(
      ServerAdminView::Parts{config_, *metrics_, *origins_, workers_, leaks_, overload_, intercept_leaves_, executors_,
                             certificates_, heap_trim_, untracked_, admin_, reloader_, drain_, warm_up_});
  otlp_ = std::make_unique<OtlpExporter>(config_, workers_, *metrics_, *view_);
  control_ = std::make_unique<ServerAdminControl>(
      ServerAdminControl::Parts{first_loop(), *origins_, *policy_, *drain_, *warm_up_, reloader_});
  admin_ = std::make_unique<AdminServer>(*executors_, config_, *view_, *control_);
  AdminServer::Inherited given{inherited("admin", config.admin.address), inherited("metrics", config.metrics.address)};
  if (Status opened = admin_->open(std::move(given)); !opened) return opened;
  overload_monitor_ =
      std::make_unique<OverloadMonitor>(admin_->loop(), overload_, config_, origins_->directory(), workers_);
  std::vector<net::Address> own;
  for (const net::Address* address : {admin_->address(), admin_->metrics_address()}) {
    if (address != nullptr) own.push_back(*address);
  }
  // The hand-over socket passes the listening sockets to any process of this user, so requests must not reach it.
  if (Result<net::Address> socket = net::Address::parse(config.handover.address)) own.push_back(*socket);
  policy_->set_forbidden(std::move(own));
  return Done{};
}

Status Server::open_handover() {
  const std::string& address = config_.get().handover.address;
  if (address.empty()) return Done{};
  exec::assume_on_loop();  // the admin loop's thread has not started
  handover_ = std::make_unique<HandoverListener>(
      HandoverListener::Parts{*admin_, config_, *origins_, first_loop(), listeners_, *drain_});
  if (Status opened = handover_->open(address, inherited("handover", address)); !opened) return opened;
  if (handover_client_) handover_client_->restore_learned_state(*origins_, *policy_);
  return Done{};
}

void Server::make_reloader(std::optional<config::Options> source, std::vector<FileSnapshot> before) {
  const ReloadBarrier::Parts round{workers_, listeners_, *origins_, *drain_};
  reloader_ = std::make_unique<Reloader>(
      Reloader::Parts{certificates_, config_, *policy_, *admin_, intercept_leaves_, round,
                      exec::Bound::to<&Server::watch_files>(*this), exec::Bound::to<&Server::try_files_again>(*this)},
      std::move(source));
  reloader_->started(std::move(before));
  files_ = std::make_unique<FileMonitor>(admin_->loop(), exec::Bound::to<&Reloader::ask>(*reloader_));
  watch_files();  // the admin thread has not started
}

void Server::watch_files() {
  exec::assume_on_loop();
  reloader_->with_files([this](const std::vector<std::string>& files, const Digests& read) LOOP_ONLY {
    if (Status watched = files_->watch(files, read); !watched) log::warn("reload", watched.fault().detail);
  });
}

void Server::try_files_again() {
  exec::assume_on_loop();
  files_->try_again();
}

}  // namespace carpool::proxy
