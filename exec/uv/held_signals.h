// HeldSignals: keeps the signals that a program handles pending while no handler exists. Otherwise one that arrives
// during the start or the last part of the end would end the process with its default action, or be lost if the process
// is the first one of a container.
#pragma once

#include <csignal>
#include <initializer_list>

namespace carpool::exec {

inline constexpr std::initializer_list<int> kHandledSignals{SIGTERM, SIGINT, SIGHUP, SIGUSR1};

class HeldSignals {
 public:
  // Must be called before the first thread starts: threads inherit the mask, and only this one may receive the signals.
  HeldSignals() {
    sigemptyset(&signals_);
    for (const int number : kHandledSignals) sigaddset(&signals_, number);
    hold();
  }
  void hold() const { pthread_sigmask(SIG_BLOCK, &signals_, nullptr); }
  // Signals that arrived meanwhile are delivered at once.
  void deliver() const { pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr); }

 private:
  sigset_t signals_{};
};

}  // namespace carpool::exec
