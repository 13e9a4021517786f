// AdminH2Connection, the loop's part: readiness, deadlines, requests that only the loop may answer, and the end.
#include "proxy/server/admin/h2_connection.h"

#include <utility>

#include "proxy/server/admin/access_rules.h"
#include "proxy/server/admin/routes.h"

namespace carpool::proxy {

namespace {
constexpr Duration kPollAwaited = std::chrono::milliseconds(5);

http::H2Options admin_h2_options() {
  http::H2Options options;
  options.head = {16 * 1024, 100, 8 * 1024};
  options.max_streams = 100;
  options.window = 128 * 1024;
  options.memory = std::size_t{1} << 20;
  options.extended_connect = false;
  return options;
}
}  // namespace

AdminH2Connection::AdminH2Connection(exec::Loop& loop, Owner& owner, const Backend& backend,
                                     const exec::StrategyParts& parts, std::unique_ptr<net::Transport> transport,
                                     Instant (*clock)())
    : loop_(loop),
      owner_(owner),
      backend_(backend),
      parts_(parts),
      clock_(clock),
      timer_(exec::Timer::bind<&AdminH2Connection::on_timer>(loop, *this)),
      poll_timer_(exec::Timer::bind<&AdminH2Connection::on_poll_timer>(loop, *this)),
      fd_(transport->fd()),
      transport_(std::move(transport)),
      session_(http::H2Role::server, admin_h2_options(), *this),
      strategy_(parts.mode, *this, parts.executor, parts.helpers, parts.failures, clock, this) {}

AdminH2Connection::~AdminH2Connection() {
  if (state_ != AdminH2State::closed) {
    if (!session_.over()) {
      session_.goaway(http::H2Error::no_error);
      static_cast<void>(write());
    }
    advance_to(AdminH2State::closed);
  }
  for (Streams* all : {&awaited_, &arriving_, &complete_, &ready_, &sending_, &dropped_}) {
    while (!all->empty()) const std::unique_ptr<AdminH2Stream> dies(&all->pop_front());
  }
  for (; in_progress_ != 0; --in_progress_) owner_.end_response();
}

Status AdminH2Connection::start(Instant deadline) {
  transport_->forget_readiness();
  Result<exec::WatchKey> key = loop_.watch(fd_, *this);
  if (!key) return key.take_fault();
  key_ = *key;
  now_ = loop_.now();
  idle_since_ = deadline - kAdminTimeout;
  published_ = deadline;
  deadline_.store(deadline.time_since_epoch().count(), std::memory_order_relaxed);
  timer_.arm(deadline);
  if (transport_->maybe_readable()) signal(0);  // no event announces bytes that TLS has buffered
  return Done{};
}

void AdminH2Connection::on_ready(exec::Ready ready) {
  // The waiting connection without events for the longest time is ended first.
  owner_.mark_waiting(*this);
  const std::uint32_t bits = (ready.readable ? Signal::readable : 0U) | (ready.writable ? Signal::writable : 0U) |
                             (ready.hangup ? Signal::hangup : 0U) | (ready.urgent ? Signal::urgent : 0U);
  signal(bits);
}

// Signals the holder of the role. If there is none, the connection becomes a task of the loop, which runs it in place
// while another thread continues the loop. Without a free thread, or with too many tasks, the loop itself reads frames
// but runs no request that may block.
void AdminH2Connection::signal(std::uint32_t bits) {
  // release pairs with the acquire in take_signals(), and with the strategy's word, whose producer checks again.
  signals_.fetch_or(bits, std::memory_order_release);
  if (strategy_.notify_producer()) return;
  // acq_rel pairs with the exchange in run_task(): if that has begun, this call submits the task again; otherwise the
  // task sees the signals.
  if (scheduled_.exchange(true, std::memory_order_acq_rel)) return;
  enter();
  if (owner_.submit(exec::lend(run_))) return;
  const exec::NonBlockingCall promise;
  strategy_.produce();
}

void AdminH2Connection::run_task() {
  scheduled_.exchange(false, std::memory_order_acq_rel);
  strategy_.produce();
  leave();
}

void AdminH2Connection::refuse_task() {
  scheduled_.exchange(false, std::memory_order_acq_rel);
  leave();
}

// acq_rel pairs with itself: every access of the other users happens before the last user's destruction of the
// connection.
void AdminH2Connection::leave() {
  exec::Loop& loop = loop_;
  if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) loop.post(unused_mail_);
}

void AdminH2Connection::on_timer() {
  exec::assume_on_loop();
  if (over_) return;
  const Instant deadline{Duration(deadline_.load(std::memory_order_relaxed))};
  if (loop_.now() < deadline) return timer_.arm(deadline);
  signal(Signal::deadline_passed);
}

void AdminH2Connection::on_loop_requests() {
  // acq_rel pairs with the one in request_loop(), which posts the mail again for bits that are set later.
  const std::uint32_t bits = loop_requests_.exchange(0, std::memory_order_acq_rel);
  if (!over_) {
    if ((bits & LoopRequest::unlisten) != 0) forget_subscriptions();
    if ((bits & LoopRequest::rearm) != 0) timer_.arm(Instant(Duration(deadline_.load(std::memory_order_relaxed))));
    if ((bits & LoopRequest::end_it) != 0) {
      end();
    } else if ((bits & LoopRequest::resume) != 0) {
      signal(0);
    }
  }
  leave();
}

void AdminH2Connection::forget_subscriptions() {
  const std::uint32_t gone = unlistened_.load(std::memory_order_relaxed);
  for (; unlistened_seen_ != gone && subscriptions_ != 0; ++unlistened_seen_, --subscriptions_) {
    owner_.unsubscribed();
  }
}

void AdminH2Connection::end() {
  if (std::exchange(over_, true)) return;
  timer_.disarm();
  poll_timer_.disarm();
  loop_.unwatch(fd_, key_);
  for (; subscriptions_ != 0; --subscriptions_) owner_.unsubscribed();
  while (!awaited_.empty()) {
    AdminH2Stream& stream = awaited_.pop_front();
    stream.awaited.reset();
    stream.made = AdminH2Stream::Made::failed;
    return_from_loop(stream);
  }
  owner_.closing(*this);
  signal(Signal::ended);
  leave();
}

// ---- requests that only the loop may answer ----

void AdminH2Connection::respond_on_loop(AdminH2Stream& stream) {
  bool subscribes = false;
  stream.made = over_ ? AdminH2Stream::Made::failed : AdminH2Stream::Made::well;
  if (!over_) {
    const admin::AdminRequest asked = stream.request();
    stream.response = handle(asked);
    if (stream.response.stream && !owner_.may_subscribe()) {
      stream.response = admin::busy_response("too many clients of /events", "10");
    }
    stream.awaited = std::move(stream.response.later);
    if (stream.awaited) {
      awaited_.push_back(stream);
      return poll_timer_.arm(loop_.now());
    }
    subscribes = stream.response.stream && asked.method != "HEAD";
    stream.listening = subscribes;
  }
  return_from_loop(stream);
  if (!subscribes) return;
  ++subscriptions_;
  owner_.subscribed();
}

void AdminH2Connection::on_poll_timer() {
  exec::assume_on_loop();
  poll_awaited();
}

void AdminH2Connection::poll_awaited() {
  for (AdminH2Stream& stream : awaited_) {
    std::optional<admin::Response> response = stream.awaited->poll_pending();
    if (!response) continue;
    stream.awaited.reset();
    stream.response = std::move(*response);
    stream.ListHook<AdminH2StreamTag>::unlink();
    return_from_loop(stream);
  }
  if (!awaited_.empty()) poll_timer_.arm(loop_.now() + kPollAwaited);
}

void AdminH2Connection::return_from_loop(AdminH2Stream& stream) {
  static_cast<void>(inbox_.push(stream.to_connection));
  signal(0);
  leave();
}

void AdminH2Connection::send_event(const admin::Event& event) {
  // acquire pairs with the release in on_event(): the mail belongs to the loop again.
  if (over_ || event_posted_.load(std::memory_order_acquire)) {
    event_skipped_ = event_skipped_ || event.changes != nullptr;
    return;
  }
  event_posted_.store(true, std::memory_order_relaxed);
  event_mail_.event = event;
  event_mail_.resync = std::exchange(event_skipped_, false);
  static_cast<void>(inbox_.push(event_mail_));
  signal(0);
}

admin::Response AdminH2Connection::handle(const admin::AdminRequest& request) const {
  return admin::handle(request, backend_.rules.get(), backend_.view, backend_.control);
}

}  // namespace carpool::proxy
