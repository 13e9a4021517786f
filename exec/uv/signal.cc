#include "exec/uv/signal.h"

#include <string>
#include <utility>

#include "exec/uv/include.h"

namespace carpool::exec {

// libuv may touch the handle until its close callback: the state lives until then, possibly longer than the Signal.
struct Signal::State {
  uv_signal_t handle{};
  Callback callback = nullptr;
  void* owner = nullptr;
};

void Signal::Close::operator()(State* state) const {
  state->callback = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&state->handle),
           [](uv_handle_t* handle) { std::unique_ptr<State>(static_cast<State*>(handle->data)).reset(); });
}

void Signal::arrived(uv_signal_s* handle, int number) noexcept {
  auto* state = static_cast<State*>(handle->data);
  if (state->callback != nullptr) state->callback(state->owner, number);
}

Result<Signal> on_signal(Loop& loop, int number, Signal::Callback callback, void* owner) {
  auto fresh = std::make_unique<Signal::State>();
  fresh->callback = callback;
  fresh->owner = owner;
  fresh->handle.data = fresh.get();
  const auto fault = [number](int error) {
    return Fault(FaultKind::internal, Side::self, "signal " + std::to_string(number) + ": " + uv_strerror(error));
  };
  if (const int error = uv_signal_init(&libuv_of(loop), &fresh->handle); error != 0) return fault(error);
  std::unique_ptr<Signal::State, Signal::Close> state(fresh.release());  // uv_close() frees it from here on
  if (const int error = uv_signal_start(&state->handle, &Signal::arrived, number); error != 0) return fault(error);
  return Signal(std::move(state));
}

Result<std::vector<Signal>> on_signals(Loop& loop, std::initializer_list<int> numbers, Signal::Callback callback,
                                       void* owner) {
  std::vector<Signal> signals;
  for (const int number : numbers) {
    Result<Signal> signal = on_signal(loop, number, callback, owner);
    if (!signal) return signal.take_fault();
    signals.push_back(std::move(*signal));
  }
  return signals;
}

}  // namespace carpool::exec
