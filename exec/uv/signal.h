// Signal: calls back on the loop's thread each time the process receives a signal, until it is destroyed.
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "base/result.h"
#include "exec/loop.h"

struct uv_signal_s;

namespace carpool::exec {

class Signal {
 public:
  using Callback = void (*)(void* owner, int number);

  Signal(Signal&&) noexcept = default;
  Signal& operator=(Signal&&) noexcept = default;
  ~Signal() = default;

 private:
  friend Result<Signal> on_signal(Loop& loop, int number, Callback callback, void* owner);
  struct State;
  struct Close {
    void operator()(State* state) const;
  };
  static void arrived(uv_signal_s* handle, int number) noexcept;  // called by C
  explicit Signal(std::unique_ptr<State, Close> state) : state_(std::move(state)) {}
  std::unique_ptr<State, Close> state_;
};

// On the loop's thread, or before it runs. `loop` must be a UvLoop.
Result<Signal> on_signal(Loop& loop, int number, Signal::Callback callback, void* owner);
// As on_signal(), of each of `numbers`; a Fault if one of them cannot be received.
Result<std::vector<Signal>> on_signals(Loop& loop, std::initializer_list<int> numbers, Signal::Callback callback,
                                       void* owner);

}  // namespace carpool::exec
