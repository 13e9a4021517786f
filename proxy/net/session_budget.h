// SessionBudget: bounds the sessions of one listener, in the order in which they began to wait for their peer. When
// full, its owner ends the session that has waited longest, so that connections that send or read nothing do not block
// new ones. Sessions with work in progress are not ended for this. may_start_work() keeps their number below the bound;
// an owner that marks a session as working without asking it must expect that none waits.
#pragma once

#include <cstddef>

#include "base/intrusive.h"

namespace carpool::proxy {

class BudgetedSession : public ListHook<struct SessionBudgetTag> {
 private:
  template <class Session>
  friend class SessionBudget;
  bool working_ = false;
};

// Session derives from BudgetedSession and is owned elsewhere.
template <class Session>
class SessionBudget {
 public:
  SessionBudget(std::size_t most, std::size_t most_working) : most_(most), most_working_(most_working) {
    CARPOOL_ASSERT(most_working < most);
  }

  std::size_t size() const { return size_; }
  bool full() const { return size_ >= most_; }
  bool may_start_work() const { return working_count_ < most_working_; }

  void join(Session& session) {
    waiting_.push_back(session);
    ++size_;
  }
  void leave(Session& session) {
    set_working(session, false);
    session.unlink();
    --size_;
  }
  // Marks the session as waiting for its peer, behind all others.
  void mark_waiting(Session& session) {
    set_working(session, false);
    session.unlink();
    waiting_.push_back(session);
  }
  void mark_working(Session& session) {
    set_working(session, true);
    session.unlink();
    working_.push_back(session);
  }

  // Iterates over the waiting sessions, the longest waiting first; starts and ends with nullptr.
  Session* next_waiting(Session* session) { return waiting_.next(session); }
  // As next_waiting(), of the sessions with work in progress.
  Session* next_working(Session* session) { return working_.next(session); }
  // Returns any session, or nullptr.
  Session* any() {
    Session* const waiting = waiting_.next(nullptr);
    return waiting != nullptr ? waiting : working_.next(nullptr);
  }

 private:
  void set_working(Session& session, bool working) {
    BudgetedSession& member = session;
    if (member.working_ != working) working ? ++working_count_ : --working_count_;
    member.working_ = working;
  }

  List<Session, SessionBudgetTag> waiting_, working_;
  std::size_t size_ = 0, working_count_ = 0;
  const std::size_t most_, most_working_;
};

}  // namespace carpool::proxy
