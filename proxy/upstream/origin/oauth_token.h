// OAuthToken: the token in force of one origin, and the state of its renewal, for requests that wait. One keeper
// (proxy/server/oauth2) fetches tokens; every loop reads them.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/fault.h"
#include "base/mutex.h"
#include "exec/coalesced_mail.h"
#include "proxy/config/config.h"

namespace carpool::proxy {

class OAuthToken {
 public:
  explicit OAuthToken(config::OAuth2 settings) : settings_(std::move(settings)) {}
  ~OAuthToken();

  const config::OAuth2& settings() const { return settings_; }

  // ---- any thread ----
  // Returns the number of the token in force; 0 if there is none. Acquire: pairs with grant() and expire().
  std::uint64_t serial() const { return serial_.load(std::memory_order_acquire); }
  // Returns the number of the token, and sets `field` to the value of Authorization.
  std::uint64_t read(std::string& field) const;
  // Returns why no other token is expected; nullopt while one is being fetched.
  std::optional<Fault> fault() const;
  Instant end() const;  // expiry of the token in force
  // Reports that the origin does not accept this token. Returns true if there is another one or one will be fetched: at
  // most one every kPause for this reason, so that an origin that accepts none does not cause a token request for each
  // request.
  bool refuse(std::uint64_t serial, Instant now);
  static constexpr Duration kPause = std::chrono::seconds(10);

  // ---- the keeper ----
  // The keeper has started. `wanted` is posted when another token is wanted, until leave(). Must outlive this object.
  void keep_by(exec::CoalescedMail& wanted);
  // The keeper has stopped: no other token is expected. `why`: for the requests that need one.
  void leave(const Fault& why);
  void begin_fetch();
  void grant(std::string token, Instant end = kNever);
  void expire();
  void fail(const Fault& fault);

 private:
  const config::OAuth2 settings_;
  std::atomic<std::uint64_t> serial_{0};
  mutable Mutex mutex_;
  std::uint64_t last_ GUARDED_BY(mutex_) = 0;  // number of the last token
  std::string field_ GUARDED_BY(mutex_);
  Instant end_ GUARDED_BY(mutex_) = kNever;
  bool expected_ GUARDED_BY(mutex_) = true;  // another token is or will be requested
  std::optional<Fault> fault_ GUARDED_BY(mutex_);
  Instant refusable_at_ GUARDED_BY(mutex_){};
  exec::CoalescedMail* wanted_ GUARDED_BY(mutex_) = nullptr;  // null: no keeper is running
};

}  // namespace carpool::proxy
