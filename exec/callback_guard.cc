#include "exec/callback_guard.h"

namespace carpool::exec {

void CallbackGuard::caught(std::exception_ptr thrown) noexcept {
  if (failures_ == nullptr) {
    if (first_ == nullptr) first_ = std::move(thrown);
    return;
  }
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const std::exception& failure) {
    failures_->on_task_failed("turn", failure.what());
  } catch (...) {
    failures_->on_task_failed("turn", "an exception of an unknown type");
  }
}

}  // namespace carpool::exec
