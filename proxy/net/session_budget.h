// SessionBudget: bounds the sessions of one listener, in the order in which they began to wait for their peer. When
// full, it evicts the session that has waited longest, so that connections that send or read nothing do not block new
// ones. Sessions with work in progress are not evicted; their number is below the bound, so there is always one to
// evict.
#pragma once

#include <cstddef>

#include "base/intrusive.h"

namespace carpool::proxy {

class BudgetedSession : public ListHook<struct SessionBudgetTag> {
 private:
  template <class Session>
  friend class SessionBudget;
  bool worked_for_ = false;
};

// Session derives from BudgetedSession and is owned elsewhere.
template <class Session>
class SessionBudget {
 public:
  SessionBudget(std::size_t most, std::size_t most_worked_for) : most_(most), most_worked_for_(most_worked_for) {
    CARPOOL_ASSERT(most_worked_for < most);
  }

  std::size_t size() const { return size_; }
  bool full() const { return size_ >= most_; }
  bool may_start_work() const { return worked_for_ < most_worked_for_; }

  void join(Session& session) {
    waiting_.push_back(session);
    ++size_;
  }
  void leave(Session& session) {
    set_worked_for(session, false);
    session.unlink();
    --size_;
  }
  // Marks the session as waiting for its peer, behind all others.
  void mark_waiting(Session& session) {
    set_worked_for(session, false);
    session.unlink();
    waiting_.push_back(session);
  }
  void mark_working(Session& session) {
    set_worked_for(session, true);
    session.unlink();
    working_.push_back(session);
  }

  // Returns nullptr if none waits.
  Session* longest_waiting() { return waiting_.empty() ? nullptr : &waiting_.front(); }
  // Iterates over the waiting sessions, as below.
  Session* next_waiting(Session* session) { return waiting_.next(session); }
  // Iterates over the sessions with work in progress; starts and ends with nullptr.
  Session* next_worked_for(Session* session) { return working_.next(session); }
  // Returns any session, or nullptr.
  Session* any() {
    Session* const waiting = waiting_.next(nullptr);
    return waiting != nullptr ? waiting : working_.next(nullptr);
  }

 private:
  void set_worked_for(Session& session, bool worked_for) {
    BudgetedSession& member = session;
    if (member.worked_for_ != worked_for) worked_for ? ++worked_for_ : --worked_for_;
    member.worked_for_ = worked_for;
  }

  List<Session, SessionBudgetTag> waiting_, working_;
  std::size_t size_ = 0, worked_for_ = 0;
  const std::size_t most_, most_worked_for_;
};

}  // namespace carpool::proxy
