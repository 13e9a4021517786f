// The difference of clocks that certificates allow for.
#pragma once

#include <chrono>

namespace carpool::proxy::tls {

// A certificate is valid from this time before its creation on, because clocks of applications may be behind ours.
inline constexpr std::chrono::minutes kClockSkew{5};

}  // namespace carpool::proxy::tls
