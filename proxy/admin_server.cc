#include "proxy/admin_server.h"

#include <utility>

#include "proxy/handover/inheritance.h"
#include "proxy/house.h"
#include "proxy/net/plain.h"

namespace carpool::proxy {

namespace {
constexpr exec::LoopId kAdminLoop = 254;  // no worker has it
constexpr Duration kTellEvery = std::chrono::seconds(1);
}  // namespace

AdminServer::AdminServer(House& house) : house_(house), view_(house), control_(house) {}

AdminServer::~AdminServer() {
  CARPOOL_ASSERT(!started_);
  if (!loop_) return;
  loop_->drain();
  bury();
  while (!sessions_.empty()) const std::unique_ptr<AdminSession> dies(&sessions_.pop_front());
}

Status AdminServer::open(Inheritance* inherited) {
  Result<std::unique_ptr<exec::UvLoop>> loop = exec::UvLoop::make(kAdminLoop);
  if (!loop) return loop.take_fault();
  loop_ = std::move(*loop);
  driver_ = house_.execution().drive(*loop_, *this, "admin loop");
  teller_ = std::make_unique<exec::Timer>(
      *loop_, [](void* self) { static_cast<AdminServer*>(self)->tell(); }, this);
  const config::Config& config = house_.config();
  const auto given = [inherited](const char* role, const std::string& address) {
    return inherited != nullptr ? inherited->take(role, address) : std::nullopt;
  };
  if (config.admin.enabled) {
    main_ = std::make_unique<AdminDoor>(*loop_, *this, false);
    if (Status opened = main_->open(config.admin.address, given("admin", config.admin.address)); !opened) return opened;
  }
  if (!config.metrics.address.empty()) {
    metrics_ = std::make_unique<AdminDoor>(*loop_, *this, true);
    if (Status opened = metrics_->open(config.metrics.address, given("metrics", config.metrics.address)); !opened) {
      return opened;
    }
  }
  exec::assume_on_loop();  // its thread has not begun
  return read_token();
}

Status AdminServer::read_token() {
  return main_ ? main_->read_token(house_.config().admin.token_file) : Status(Done{});
}

void AdminServer::close_doors() {
  if (main_) main_->leave();
  if (metrics_) metrics_->leave();
}

bool AdminServer::start() {
  started_ = driver_->start();
  return started_;
}

void AdminServer::stop() {
  if (!std::exchange(started_, false)) return;
  driver_->stop();
  driver_->wait_until_stopped();
  ended_ = true;
}

void AdminServer::in_background(exec::TaskPtr task) {
  house_.execution().in_background(std::move(task));
}

void AdminServer::came(AdminDoor& door, Fd client) {
  if (sessions() >= kMostSessions) return;  // closed at once
  const AdminSession::Asks asks{door.rules(), view_, control_};
  auto session = std::make_unique<AdminSession>(*loop_, *this, asks, net::make_plain(client.release()));
  if (!session->start()) return;
  open_.fetch_add(1, std::memory_order_relaxed);
  sessions_.push_back(*session.release());  // owned by the list until bury()
}

void AdminServer::listens(AdminSession& session) {
  if (listeners_++ == 0) teller_->arm(loop_->now() + kTellEvery);
  feed_.update(view_);
  session.offer(feed_.whole(), feed_.changes());
}

// Once for all of them. Who has not taken the last message gets none now, and later the whole state again: what waits
// for a listener is one message at most.
void AdminServer::tell() {
  exec::assume_on_loop();
  if (listeners_ == 0) return;
  feed_.update(view_);
  for (AdminSession* session = sessions_.next(nullptr); session != nullptr;) {
    AdminSession* after = sessions_.next(session);
    if (session->listening()) session->offer(feed_.whole(), feed_.changes());
    session = after;
  }
  teller_->arm(loop_->now() + kTellEvery);
}

void AdminServer::ended(AdminSession& session) {
  if (session.listening()) --listeners_;
  session.unlink();
  graves_.push_back(session);
  open_.fetch_sub(1, std::memory_order_relaxed);
  if (!undertaker_.linked()) loop_->defer(undertaker_);
}

void AdminServer::bury() {
  while (!graves_.empty()) const std::unique_ptr<AdminSession> dies(&graves_.pop_front());
}

}  // namespace carpool::proxy
