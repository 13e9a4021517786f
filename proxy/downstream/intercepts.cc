#include "proxy/downstream/intercepts.h"

#include <chrono>
#include <cstddef>
#include <utility>

#include "proxy/exchange/listen_point.h"

namespace carpool::proxy {

namespace {
constexpr std::size_t kMaxRefusals = 4096;  // if exceeded, the oldest is dropped
constexpr Duration kRefusalLifetime = std::chrono::minutes(10);

std::string key_of(const Interception& to) {
  const std::string suites = std::to_string(to.client.suites);
  const std::string_view offer = metrics::kTlsOffers[static_cast<std::size_t>(to.client.offer)];
  std::string key(to.origin.label());
  key.append(1, '\n').append(to.client.name).append(1, '\n').append(offer).append(1, '\n').append(suites);
  return key;
}
}  // namespace

void Intercepts::replace(Leaves leaves, std::uint64_t authority, bool tunnels_after_refusal) {
  const Held lock(mutex_);
  std::swap(leaves_, leaves);  // destroys the old leaves after the mutex is released
  authority_ = authority;
  tunnels_ = tunnels_after_refusal;
  for (auto& [label, tally] : tallies_) tally.begun = tally.begun && leaves_.contains(label);
}

std::optional<Intercepts::Leaf> Intercepts::leaf(const std::string& label) const {
  const Held lock(mutex_);
  const auto found = leaves_.find(label);
  return found == leaves_.end() ? std::nullopt : std::optional(Leaf{found->second, authority_});
}

bool Intercepts::in_force(const Interception& interception) const {
  const Held lock(mutex_);
  return interception.authority == authority_ && leaves_.contains(interception.origin.label());
}

Intercepts::Noted Intercepts::note_refusal(const Interception& to, metrics::CertificateAlert alert, Instant now) {
  const std::string key = key_of(to);
  const Held lock(mutex_);
  const bool suspected = renew(key, now);
  if (alert == metrics::CertificateAlert::none && !suspected) return Noted::suspicion;
  refusals_.back().proven = true;
  const std::string& label = to.origin.label();
  if (!leaves_.contains(label)) return Noted::refusal;  // a reload ended the interception meanwhile
  Tally& tally = tallies_[label];
  ++tally.counts[static_cast<std::size_t>(to.client.offer)][static_cast<std::size_t>(alert)];
  return std::exchange(tally.begun, true) ? Noted::refusal : Noted::first_refusal;
}

// Makes the entry of `key` the latest one. Returns true if there was one, a suspicion or a refusal.
bool Intercepts::renew(const std::string& key, Instant now) {
  const auto known = by_key_.find(key);
  const bool noted = known != by_key_.end() && now < known->second->until;
  const bool proven = noted && known->second->proven;
  if (known != by_key_.end()) {
    forget(known->second);
  } else if (refusals_.size() >= kMaxRefusals) {
    forget(refusals_.begin());
  }
  refusals_.push_back({key, now + kRefusalLifetime, proven});
  by_key_.emplace(key, std::prev(refusals_.end()));
  return noted;
}

void Intercepts::forget(Refusals::iterator one) {
  by_key_.erase(one->key);
  refusals_.erase(one);
}

void Intercepts::note_trust(const Interception& to) {
  const Held lock(mutex_);
  if (refusals_.empty()) return;
  const auto found = by_key_.find(key_of(to));
  if (found != by_key_.end() && !found->second->proven) forget(found->second);
}

bool Intercepts::refused_before(const Interception& to, Instant now) const {
  const Held lock(mutex_);
  if (!tunnels_ || refusals_.empty()) return false;
  const auto found = by_key_.find(key_of(to));
  return found != by_key_.end() && found->second->proven && now < found->second->until;
}

bool Intercepts::tunnels_after_refusal() const {
  const Held lock(mutex_);
  return tunnels_;
}

std::vector<metrics::RefusalSample> Intercepts::refusals() const {
  std::vector<metrics::RefusalSample> all;
  const Held lock(mutex_);
  for (const auto& [label, tally] : tallies_) {
    for (std::size_t offer = 0; offer < tally.counts.size(); ++offer) {
      for (std::size_t alert = 0; alert < tally.counts[offer].size(); ++alert) {
        const std::uint64_t refusals = tally.counts[offer][alert];
        if (refusals == 0) continue;
        all.push_back({label, metrics::kTlsOffers[offer], metrics::kCertificateAlerts[alert], refusals});
      }
    }
  }
  return all;
}

}  // namespace carpool::proxy
