// start_thread(): creates a std::thread, or returns a Fault if the system starts no more threads.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/result.h"

namespace carpool::proxy {

template <class Work>
Result<std::thread> start_thread(const char* owner, Work work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error&) {
    return Fault{FaultKind::internal, Side::self, std::string("cannot start a thread for ") + owner};
  }
}

}  // namespace carpool::proxy
