#include "proxy/upstream/origin/oauth_token.h"

#include "proxy/config/secret.h"

namespace carpool::proxy {

OAuthToken::~OAuthToken() {
  config::wipe(field_);
}

std::uint64_t OAuthToken::read(std::string& field) const {
  const Held lock(mutex_);
  field = field_;
  return serial();
}

std::optional<Fault> OAuthToken::fault() const {
  const Held lock(mutex_);
  return expected_ ? std::nullopt : fault_;
}

Instant OAuthToken::end() const {
  const Held lock(mutex_);
  return end_;
}

bool OAuthToken::refuse(std::uint64_t serial, Instant now) {
  const Held lock(mutex_);
  const std::uint64_t current = serial_.load(std::memory_order_acquire);
  if (current != serial && current != 0) return true;
  if (expected_) return true;
  if (fault_ || wanted_ == nullptr || now < refusable_at_) return false;
  refusable_at_ = now + kPause;
  expected_ = true;
  wanted_->post();
  return true;
}

void OAuthToken::keep_by(exec::CoalescedMail& wanted) {
  const Held lock(mutex_);
  wanted_ = &wanted;
  if (serial_.load(std::memory_order_acquire) != 0) fault_.reset();  // that of leave()
}

void OAuthToken::leave(const Fault& why) {
  const Held lock(mutex_);
  wanted_ = nullptr;
  expected_ = false;
  fault_ = why;
}

void OAuthToken::begin_fetch() {
  const Held lock(mutex_);
  expected_ = true;
  fault_.reset();
}

// Release: pairs with serial().
void OAuthToken::grant(std::string token, Instant end) {
  const Held lock(mutex_);
  config::wipe(field_);
  field_.append("Bearer ").append(token);
  config::wipe(token);
  end_ = end;
  expected_ = false;
  fault_.reset();
  serial_.store(++last_, std::memory_order_release);
}

void OAuthToken::expire() {
  const Held lock(mutex_);
  config::wipe(field_);
  serial_.store(0, std::memory_order_release);
}

void OAuthToken::fail(const Fault& fault) {
  const Held lock(mutex_);
  expected_ = false;
  fault_ = fault;
}

}  // namespace carpool::proxy
