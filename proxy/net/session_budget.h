// SessionBudget: the sessions of one door, up to a bound, in the order in which they began to wait for their peer. A
// full one makes room for a newcomer by ending the session that has waited longest, so connections that send nothing,
// or take nothing, keep nobody out. Sessions that are worked for are not ended; they are bounded by less than the
// whole, so there is always one to end.
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

// Session derives from BudgetedSession. The owner of the sessions is somebody else.
template <class Session>
class SessionBudget {
 public:
  SessionBudget(std::size_t most, std::size_t most_worked_for) : most_(most), most_worked_for_(most_worked_for) {
    CARPOOL_ASSERT(most_worked_for < most);
  }

  std::size_t size() const { return size_; }
  bool full() const { return size_ >= most_; }
  bool room_to_work() const { return worked_for_ < most_worked_for_; }

  void join(Session& session) {
    waiting_.push_back(session);
    ++size_;
  }
  void leave(Session& session) {
    set_worked_for(session, false);
    session.unlink();
    --size_;
  }
  // The session waits for its peer from now on, behind all others.
  void waits(Session& session) {
    set_worked_for(session, false);
    session.unlink();
    waiting_.push_back(session);
  }
  void works(Session& session) {
    set_worked_for(session, true);
    session.unlink();
    working_.push_back(session);
  }

  // Null: none waits.
  Session* longest_waiting() { return waiting_.empty() ? nullptr : &waiting_.front(); }
  // The next of those that wait, as below.
  Session* next_waiting(Session* session) { return waiting_.next(session); }
  // The next of those that are worked for; starts with null, and ends with it.
  Session* next_worked_for(Session* session) { return working_.next(session); }
  // Any one; null: there is none.
  Session* any() { return waiting_.empty() ? working_.next(nullptr) : &waiting_.front(); }

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
