#include "proxy/downstream/intercepts.h"

#include <chrono>
#include <cstddef>
#include <utility>

namespace carpool::proxy {

namespace {
constexpr std::size_t kMaxRefusals = 4096;  // then the oldest is forgotten
constexpr Duration kTunnels = std::chrono::minutes(10);

std::string key_of(const std::string& label, const std::string& client) {
  return label + '\n' + client;
}
}  // namespace

void Intercepts::replace(Leaves leaves, bool tunnels_after_refusal) {
  const Held lock(mutex_);
  std::swap(leaves_, leaves);  // the old ones are destroyed after the lock
  tunnels_ = tunnels_after_refusal;
  for (auto at = warned_.begin(); at != warned_.end();) at = leaves_.contains(at->first) ? ++at : warned_.erase(at);
}

std::optional<ListenerIdentity> Intercepts::leaf(const std::string& label) const {
  const Held lock(mutex_);
  const auto found = leaves_.find(label);
  return found == leaves_.end() ? std::nullopt : std::optional(found->second);
}

bool Intercepts::note_refusal(const std::string& label, const std::string& client, Instant now) {
  const Held lock(mutex_);
  std::string key = key_of(label, client);
  if (const auto known = by_key_.find(key); known != by_key_.end()) {
    refusals_.erase(known->second);
    by_key_.erase(known);
  } else if (refusals_.size() >= kMaxRefusals) {
    by_key_.erase(refusals_.front().key);
    refusals_.pop_front();
  }
  refusals_.push_back({key, now + kTunnels});
  by_key_.emplace(std::move(key), std::prev(refusals_.end()));
  return !std::exchange(warned_[label], true);
}

bool Intercepts::refused_before(const std::string& label, const std::string& client, Instant now) const {
  const Held lock(mutex_);
  if (!tunnels_ || refusals_.empty()) return false;
  const auto found = by_key_.find(key_of(label, client));
  return found != by_key_.end() && now < found->second->until;
}

bool Intercepts::tunnels_after_refusal() const {
  const Held lock(mutex_);
  return tunnels_;
}

}  // namespace carpool::proxy
