#include "proxy/server/oauth2/token_schedule.h"

#include <algorithm>

namespace carpool::proxy {

TokenSchedule::Action TokenSchedule::due(Instant now) {
  if (has_token() && now >= ends_at_) {
    ends_at_ = kNever;
    return Action::expire;
  }
  if (fetching_ || now < fetch_at_) return Action::none;
  fetching_ = true;
  return Action::fetch;
}

Instant TokenSchedule::next() const {
  return std::min(ends_at_, fetching_ ? kNever : fetch_at_);
}

// Renews the token between 70 and 80 % of its lifetime, so that processes that started together do not send their
// requests together.
void TokenSchedule::granted(Instant now, Duration lifetime) {
  const Duration life = std::clamp(lifetime, kShortestLife, kMaxLife);
  fetching_ = false;
  failures_ = 0;
  ends_at_ = now + life;
  const auto percent = static_cast<std::int64_t>(70 + random_.below(11));
  fetch_at_ = now + life / 100 * percent;
}

void TokenSchedule::inherited(Instant now, Instant end) {
  if (end - now > kShortestLife) return granted(now, end - now);
  ends_at_ = end;  // and another one is fetched at once
}

// Each pause is twice the previous one, minus a random part of up to a quarter.
void TokenSchedule::failed(Instant now) {
  fetching_ = false;
  const Duration pause = std::min(kFirstPause * (std::int64_t{1} << std::min(failures_, 10U)), kMaxPause);
  ++failures_;
  fetch_at_ = now + pause - pause / 100 * static_cast<std::int64_t>(random_.below(26));
}

void TokenSchedule::refused(Instant now) {
  if (failures_ == 0) fetch_at_ = std::min(fetch_at_, now);
}

}  // namespace carpool::proxy
