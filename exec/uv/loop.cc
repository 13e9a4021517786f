#include "exec/uv/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <uv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string>
#include <system_error>

#include "exec/uv/include.h"

namespace carpool::exec {
namespace {

constexpr int kEventsPerTurn = 256;
constexpr Duration kMaxFullTime = std::chrono::milliseconds(100);  // of turns with kEventsPerTurn events before timers
constexpr std::size_t kMailPerTurn = 1024;
constexpr std::size_t kDeferredPerTurn = 4096;
constexpr std::size_t kTimersPerTurn = 512;
constexpr std::size_t kScratch = std::size_t{64} * 1024;
constexpr std::uint32_t kStreamInterest = EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET;

Fault system_fault(const char* what, int error) {
  const bool out_of = error == EMFILE || error == ENFILE || error == ENOSPC || error == ENOMEM;
  return {out_of ? FaultKind::budget : FaultKind::internal, Side::self,
          std::string(what) + ": " + std::generic_category().message(error)};
}

// Checks that the descriptors of libuv's first loop can be opened: libuv ends the process if they cannot.
Status descriptors_are_free() {
  std::array<Fd, 6> probes;  // an epoll, an eventfd and two pipes
  for (Fd& probe : probes) {
    probe.reset(::eventfd(0, EFD_CLOEXEC));
    if (!probe) return system_fault("descriptors of libuv", errno);
  }
  return Done{};
}

// Returns how long libuv may wait, in milliseconds; -1: it has no timer. libuv's time is old, so no timer seems due too
// early; the clock is read again only if there is a timer.
int libuv_wait_ms(uv_loop_t& uv) {
  const int wait = uv_backend_timeout(&uv);
  if (wait <= 0) return wait;
  uv_update_time(&uv);
  return uv_backend_timeout(&uv);
}

Ready ready_from(std::uint32_t events) {
  return {.readable = (events & EPOLLIN) != 0,
          .writable = (events & EPOLLOUT) != 0,
          .hangup = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0,
          .urgent = (events & EPOLLPRI) != 0};
}

}  // namespace

// While it exists, the calling thread is the loop's thread.
class UvLoop::LoopThreadScope {
 public:
  explicit LoopThreadScope(UvLoop& loop) : loop_(loop) {
    // relaxed: it only answers "is it this thread?"; moving the loop between threads is ordered by the mover.
    std::thread::id none;
    CARPOOL_ASSERT(loop_.thread_.compare_exchange_strong(none, std::this_thread::get_id(), std::memory_order_relaxed));
  }
  LoopThreadScope(const LoopThreadScope&) = delete;
  LoopThreadScope& operator=(const LoopThreadScope&) = delete;
  ~LoopThreadScope() { loop_.thread_.store({}, std::memory_order_relaxed); }

 private:
  UvLoop& loop_;
};

Result<std::unique_ptr<UvLoop>> UvLoop::make(LoopId id) {
  std::unique_ptr<UvLoop> loop(new UvLoop(id));  // private constructor
  if (Status opened = loop->open(); !opened) return opened.take_fault();
  return loop;
}

UvLoop::UvLoop(LoopId id) : id_(id), now_(Clock::now()), scratch_(std::make_unique_for_overwrite<char[]>(kScratch)) {}

Status UvLoop::open() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return system_fault("epoll_create1", errno);
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return system_fault("eventfd", errno);
  if (Status free = descriptors_are_free(); !free) return free;
  auto uv = std::make_unique<uv_loop_t>();
  if (const int error = uv_loop_init(uv.get()); error != 0) return system_fault("uv_loop_init", -error);
  uv_ = std::move(uv);
  if (Status enrolled = add_libuv(); !enrolled) return enrolled;
  auto anchor = std::make_unique<uv_async_t>();
  if (const int error = uv_async_init(uv_.get(), anchor.get(), nullptr); error != 0) {
    return system_fault("uv_async_init", -error);
  }
  anchor_ = std::move(anchor);
  // Edge-triggered and never read: each write is a new edge, and the counter cannot overflow in practice.
  if (Status added = add(wake_.get(), EPOLLIN | EPOLLET, {.kind = EventKind::wake}); !added) return added;
  // Level-triggered: libuv handles a bounded number of events per run.
  if (Status added = add(uv_backend_fd(uv_.get()), EPOLLIN, {.kind = EventKind::libuv}); !added) return added;
  uv_run(uv_.get(), UV_RUN_NOWAIT);  // handles are not in its set until it has run once
  return Done{};
}

// libuv ends the process if the kernel refuses its descriptors. A descriptor that is in libuv's set before libuv adds
// it is modified instead, which cannot fail.
Status UvLoop::add_libuv() {
  for (const int fd : {uv_->async_io_watcher.fd, uv_->signal_io_watcher.fd}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(uv_backend_fd(uv_.get()), EPOLL_CTL_ADD, fd, &event) != 0) return system_fault("epoll_ctl", errno);
  }
  return Done{};
}

UvLoop::~UvLoop() {
  if (uv_ == nullptr) return;
  if (anchor_ != nullptr) uv_close(reinterpret_cast<uv_handle_t*>(anchor_.get()), nullptr);
  // Not UV_RUN_DEFAULT: a handle that was not closed must not block the end of the process. Without the anchor there is
  // no handle, and libuv may lack its descriptors.
  for (int i = 0; anchor_ != nullptr && i < 16 && uv_run(uv_.get(), UV_RUN_NOWAIT) != 0; ++i) {
  }
  CARPOOL_ASSERT(uv_loop_close(uv_.get()) == 0);
}

void UvLoop::run() {
  const LoopThreadScope here(*this);
  enter();
  // acquire pairs with the release in stop(): writes before stop() are visible after run().
  while (!stop_.load(std::memory_order_acquire)) step(true);
  stop_.store(false, std::memory_order_relaxed);
}

void UvLoop::stop() {
  stop_.store(true, std::memory_order_release);
  wake();
}

void UvLoop::report_failures_to(FailureSink* failures) {
  enter();
  guard_.report_to(failures);
}

void UvLoop::turn(bool may_wait) {
  const LoopThreadScope here(*this);
  enter();
  step(may_wait);
}

void UvLoop::drain() {
  const LoopThreadScope here(*this);
  enter();
  // Bounded, because deferred work may defer itself forever.
  for (int rounds = 0; rounds < 1024 && (mailbox_.has_mail() || !deferred_.empty()); ++rounds) {
    mailbox_.deliver(kMailPerTurn, guard_);
    deferred_.run_turn(kDeferredPerTurn, guard_);
  }
  guard_.rethrow();
}

void UvLoop::enter() const {
  const std::thread::id thread = thread_.load(std::memory_order_relaxed);
  CARPOOL_ASSERT(thread == std::this_thread::get_id() || thread == std::thread::id());
}

void UvLoop::step(bool may_wait) {
  epoll_event events[kEventsPerTurn];
  const Instant before = Clock::now();
  times_.end(before);
  const Polled polled = wait(events, before, may_wait ? wait_ms(before) : 0);
  now_ = Clock::now();
  const Instant due = timers_.next();
  times_.begin(now_, due <= polled.complete_at ? due : kNever);
  ++turns_;
  for (int i = 0; i < polled.events; ++i) dispatch(events[i]);
  mailbox_.deliver(kMailPerTurn, guard_);
  deferred_.run_turn(kDeferredPerTurn, guard_);
  if (!more_events(polled.events)) timers_.run_due(polled.complete_at, kTimersPerTurn, guard_);
  run_libuv();
  guard_.rethrow();
}

// A timer may limit input that is ready, so a timer runs only if the wait has reported all input that precedes its
// deadline. After the wait the thread may lose its processor, or the process may be stopped, for any time, in which
// more input arrives and more timers become due; both belong to the next turn. A signal ends the wait without the
// events that are ready, also the signal that continues a stopped process; they are taken then.
UvLoop::Polled UvLoop::wait(epoll_event* events, Instant before, int ms) const {
  int event_count = ::epoll_wait(epoll_.get(), events, kEventsPerTurn, ms);
  if (event_count > 0 || (event_count == 0 && ms <= 0)) return {event_count, before};
  if (event_count == 0) return {0, before + std::chrono::milliseconds(ms)};
  CARPOOL_ASSERT(errno == EINTR);
  const Instant again = Clock::now();
  event_count = ::epoll_wait(epoll_.get(), events, kEventsPerTurn, 0);
  CARPOOL_ASSERT(event_count >= 0 || errno == EINTR);
  return {event_count, event_count >= 0 ? again : before};
}

// Returns true if more events may be ready. Timers then wait for another turn, because the input that a timer limits
// may be among these events. They wait for at most kMaxFullTime, because a busy loop may always have more.
bool UvLoop::more_events(int event_count) {
  if (event_count < kEventsPerTurn) {
    full_since_.reset();
    return false;
  }
  if (!full_since_) full_since_ = now_;
  return now_ - *full_since_ < kMaxFullTime;
}

int UvLoop::wait_ms(Instant now) {
  // has_mail() covers what this thread posted to itself, for which post() does not wake. All other mail has a wake-up
  // pending in the epoll set.
  if (!deferred_.empty() || mailbox_.has_mail()) return 0;
  const int libuv_ms = libuv_wait_ms(*uv_);
  const Instant due = timers_.next();
  if (libuv_ms == 0 || due == kNever) return libuv_ms;
  // Rounded up: a wait that ends before the deadline wastes a turn.
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - now).count();
  const int timer_ms = static_cast<int>(std::clamp<decltype(left)>(left, 0, INT_MAX));
  return libuv_ms < 0 ? timer_ms : std::min(libuv_ms, timer_ms);
}

void UvLoop::dispatch(const epoll_event& event) {
  const EventName name = EventName::unpack(event.data.u64);
  switch (name.kind) {
    case EventKind::wake:
      return;  // it only ends the wait: the mailbox is checked every turn
    case EventKind::libuv:
      libuv_ready_ = true;
      return;
    case EventKind::local:
      if (Watcher* watcher = watchers_.find(name.index, name.generation)) {
        guard_.call([&]() LOOP_ONLY { watcher->on_ready(ready_from(event.events)); });
      }
      return;
    case EventKind::shared:
      if (shared_watcher_ == nullptr) return;
      guard_.call(
          [&]() LOOP_ONLY { shared_watcher_->on_shared_ready(name.index, name.generation, ready_from(event.events)); });
      return;
  }
}

void UvLoop::run_libuv() {
  if (!libuv_ready_ && libuv_wait_ms(*uv_) != 0) return;
  libuv_ready_ = false;
  uv_run(uv_.get(), UV_RUN_NOWAIT);
}

void UvLoop::arm(Timer& timer, Instant deadline) {
  enter();
  timers_.arm(timer, deadline);
}

void UvLoop::disarm(Timer& timer) {
  enter();
  timers_.remove(timer);
}

void UvLoop::defer(Deferred& work) {
  enter();
  deferred_.push(work);
}

void UvLoop::post(Mail& mail) {
  if (!mailbox_.push(mail)) return;
  // This thread checks the mailbox before it waits. Only the loop's own thread can read its own id here.
  if (thread_.load(std::memory_order_relaxed) == std::this_thread::get_id()) return;
  wake();
}

void UvLoop::wake() {
  const std::uint64_t one = 1;
  // The only possible error is a full counter; a wake-up is pending then.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

Status UvLoop::add(int fd, std::uint32_t interest, EventName name) {
  epoll_event event{};
  event.events = interest;
  event.data.u64 = name.pack();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return system_fault("epoll_ctl", errno);
  return Done{};
}

Result<WatchKey> UvLoop::watch(int fd, Watcher& watcher) {
  enter();
  const WatchKey key = watchers_.add(watcher);
  Status added = add(fd, kStreamInterest, {EventKind::local, key.generation, key.slot});
  if (added) return key;
  watchers_.remove(key);
  return added.take_fault();
}

void UvLoop::unwatch(int fd, WatchKey key) {
  enter();
  if (!watchers_.remove(key)) return;
  // Fails only if `fd` was closed before: its number may then belong to another file.
  CARPOOL_ASSERT(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr) == 0);
}

void UvLoop::forget(int, WatchKey key) {
  enter();
  watchers_.remove(key);
}

Status UvLoop::watch_shared(int fd, std::uint32_t index, std::uint32_t generation) {
  enter();
  CARPOOL_ASSERT(generation < EventName::kSharedGenerations);
  return add(fd, kStreamInterest, {EventKind::shared, generation, index});
}

void UvLoop::unwatch_shared(int fd) {
  // The kernel's set has its own lock. ENOENT: it was not watched here.
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr) != 0) CARPOOL_ASSERT(errno == ENOENT);
}

void UvLoop::set_shared_watcher(SharedWatcher* watcher) {
  enter();
  shared_watcher_ = watcher;
}

std::span<char> UvLoop::scratch() {
  enter();
  return {scratch_.get(), kScratch};
}

uv_loop_t& libuv_of(Loop& loop) {
  auto* real = dynamic_cast<UvLoop*>(&loop);
  CARPOOL_ASSERT(real != nullptr);
  return *real->uv_;
}

}  // namespace carpool::exec
