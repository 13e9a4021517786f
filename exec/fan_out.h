// fan_out: sends one query to several loops and collects their replies, by mail. The targets are a range of pointers,
// plain or unique, to objects with a loop: loop_of(*pointer), found by argument-dependent lookup.
//
// The replies are bounded: at most one per target. A loop that ends with the question in its mailbox, and one on which
// the question throws, ends its part without a reply, so the caller never waits for it. One allocation per target:
// not for the steady request path.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "exec/loop.h"
#include "exec/posted_function.h"

namespace carpool::exec {

inline Loop& loop_of(Loop& loop) {
  return loop;
}

// Calls `function(target)` on the loop of each target and does not report when that has happened.
template <class Targets, class Function>
void post_to_loops(const Targets& targets, Function function) {
  for (const auto& target : targets) send(loop_of(*target), [&to = *target, function]() LOOP_ONLY { function(to); });
}

// The replies to one query, unordered. Shared by the side that waits and the loops that reply.
template <class Reply>
class Replies {
 public:
  explicit Replies(std::size_t asked) : missing_(asked) { all_.reserve(asked); }

  // Must be called once per target; empty: it does not reply. Returns true for the last one.
  bool end_one(std::optional<Reply> reply) {
    const Held lock(mutex_);
    if (reply) all_.push_back(std::move(*reply));
    if (--missing_ != 0) return false;
    none_missing_.notify_all();
    return true;
  }
  // Waits at most `timeout` for missing replies. Later ones are discarded. Must not be called on a queried loop.
  std::vector<Reply> wait(Duration timeout) {
    static_cast<void>(all_ended(timeout));
    return take();
  }
  std::vector<Reply> take() {  // those that have arrived
    const Held lock(mutex_);
    return std::move(all_);
  }
  // Waits at most `timeout`; returns true if none is missing. The replies stay. Must not be called on a queried loop.
  bool all_ended(Duration timeout) {
    const Instant until = deadline_after(Clock::now(), timeout);
    const Held lock(mutex_);
    while (missing_ != 0 && none_missing_.wait_until(mutex_, until) != std::cv_status::timeout) {
    }
    return missing_ == 0;
  }

 private:
  Mutex mutex_;
  std::condition_variable_any none_missing_;
  std::size_t missing_ GUARDED_BY(mutex_);
  std::vector<Reply> all_ GUARDED_BY(mutex_);
};

// As Replies, but the last reply sends all of them to a loop: done(replies) is called there.
template <class Reply, class Done>
class RepliesToLoop {
 public:
  RepliesToLoop(std::size_t asked, Loop& home, Done done) : replies_(asked), home_(home), done_(std::move(done)) {}
  void end_one(std::optional<Reply> reply) {
    if (!replies_.end_one(std::move(reply))) return;
    send(home_, [done = std::move(done_), all = replies_.take()]() LOOP_ONLY mutable { done(std::move(all)); });
  }

 private:
  Replies<Reply> replies_;
  Loop& home_;
  Done done_;
};

// One target's part of a query: ends once, without a reply if it is destroyed before give().
template <class Collector>
class PendingReply {
 public:
  explicit PendingReply(std::shared_ptr<Collector> to) : to_(std::move(to)) {}
  PendingReply(PendingReply&&) noexcept = default;
  PendingReply& operator=(PendingReply&&) = delete;
  ~PendingReply() {
    if (to_) to_->end_one(std::nullopt);
  }
  template <class Reply>
  void give(Reply reply) {
    std::exchange(to_, nullptr)->end_one(std::move(reply));
  }

 private:
  std::shared_ptr<Collector> to_;
};

// Calls `query(target)` on the loop of each target; `replies` collects the return values and counts the targets.
template <class Collector, class Targets, class Query>
void fan_out(const Targets& targets, const std::shared_ptr<Collector>& replies, Query query) {
  for (const auto& target : targets) {
    send(loop_of(*target), [&to = *target, pending = PendingReply<Collector>(replies), query]()
                               LOOP_ONLY mutable { pending.give(query(to)); });
  }
}

// Queries the loops and waits for their replies. Must be called on a thread that runs none of the loops. Replies that
// do not arrive within `timeout` are left out; those queries still run.
template <class Reply, class Targets, class Query>
std::vector<Reply> query_loops(const Targets& targets, Duration timeout, Query query) {
  const auto replies = std::make_shared<Replies<Reply>>(std::size(targets));
  fan_out(targets, replies, std::move(query));
  return replies->wait(timeout);
}

// Queries one loop and waits. Returns nullopt if it did not reply in time.
template <class Reply, class Query>
std::optional<Reply> query_loop(Loop& loop, Duration timeout, Query query) {
  std::vector<Reply> replies =
      query_loops<Reply>(std::array{&loop}, timeout, [query = std::move(query)](Loop&) LOOP_ONLY { return query(); });
  return replies.empty() ? std::nullopt : std::optional<Reply>(std::move(replies.front()));
}

// Queries without waiting: done(replies) is called on `home` when every target has ended its part, at once if there is
// none. `home` must outlive the mailboxes of the targets, or those must be empty before it is destroyed.
template <class Reply, class Targets, class Query, class Done>
void query_loops_then(Loop& home, const Targets& targets, Query query, Done done) {
  if (std::empty(targets)) return send(home, [done = std::move(done)]() LOOP_ONLY mutable { done({}); });
  const auto replies = std::make_shared<RepliesToLoop<Reply, Done>>(std::size(targets), home, std::move(done));
  fan_out(targets, replies, std::move(query));
}

}  // namespace carpool::exec
