#include "proxy/upstream/origin/credentials.h"

#include <algorithm>
#include <utility>

#include "base/forbid_dumps.h"
#include "proxy/config/check_credentials.h"
#include "proxy/config/secret.h"
#include "proxy/config/text.h"
#include "proxy/http/field_name.h"
#include "proxy/http/set_field.h"
#include "proxy/upstream/origin/oauth_token.h"

namespace carpool::proxy {

namespace {
constexpr std::string_view kAuthorization = "Authorization";
constexpr std::string_view kClientSecret = "client_secret";

std::vector<config::SetField> watched(const config::OriginSettings& origin) {
  std::vector<config::SetField> all = origin.headers;
  if (!origin.oauth2.token_url.empty()) all.push_back({std::string(kClientSecret), origin.oauth2.client_secret});
  return all;
}

// Returns the value, or a Fault that does not contain it.
Result<std::string> usable_value(const config::Secret& secret) {
  Result<std::string> value = config::value_of(secret);
  if (!value || http::sendable_value(*value)) return value;
  config::wipe(*value);
  return Fault{FaultKind::internal, Side::self, secret.file + " does not contain a valid field value"};
}

std::string too_large_together() {
  return "the fields of request.headers have more than " + config::size_text(config::kMaxFieldBytes) + " together";
}
}  // namespace

Credentials::Credentials(const config::OriginSettings& origin, unsigned loops)
    : label_(origin.origin.label()),
      settings_(watched(origin)),
      fields_(origin.headers.size()),
      token_(origin.oauth2.token_url.empty() ? nullptr : std::make_unique<OAuthToken>(origin.oauth2)),
      copies_(loops),
      values_(settings_.size()) {}

Credentials::~Credentials() {
  for (Value& value : values_) config::wipe(value.bytes);
  for (InForce& copy : copies_) copy.fields.wipe(0);
}

Result<std::unique_ptr<Credentials>> Credentials::make(const config::OriginSettings& origin, unsigned loops) {
  forbid_dumps();
  std::unique_ptr<Credentials> made(new Credentials(origin, loops));
  for (std::size_t i = 0; i < made->settings_.size(); ++i) {
    Result<std::string> value = usable_value(made->settings_[i].value);
    if (!value) {
      return Fault{FaultKind::internal, Side::self,
                   made->label_ + ": " + (i < made->fields_ ? "request.headers." : "oauth2.") +
                       made->settings_[i].name + ": " + value.fault().detail};
    }
    const Held lock(made->mutex_);
    made->values_[i].bytes = std::move(*value);
  }
  const Held lock(made->mutex_);
  if (!made->fields_fit({})) {
    return Fault{FaultKind::internal, Side::self, made->label_ + ": " + too_large_together()};
  }
  made->publish();
  return made;
}

// Release: pairs with in_force(), after which a loop copies the values under the mutex.
void Credentials::publish() {
  version_.fetch_add(1, std::memory_order_release);
}

const Credentials::InForce& Credentials::in_force(const net::ProvenPeer&, LoopId loop) {
  InForce& own = copies_[loop];
  // Acquire: pairs with publish().
  const bool same = own.version == version_.load(std::memory_order_acquire);
  if (same && own.token == (token_ ? token_->serial() : 0)) return own;
  const Held lock(mutex_);
  own.version = version_.load(std::memory_order_acquire);
  std::string authorization;
  if (token_) own.token = token_->read(authorization);
  std::size_t bytes = http::Fields::bytes_of(kAuthorization, authorization);
  for (std::size_t i = 0; i < fields_; ++i) bytes += http::Fields::bytes_of(settings_[i].name, values_[i].bytes);
  own.fields.wipe(bytes);
  for (std::size_t i = 0; i < fields_; ++i) own.fields.add(settings_[i].name, values_[i].bytes);
  if (own.token != 0) own.fields.add(kAuthorization, authorization);
  config::wipe(authorization);
  return own;
}

std::string Credentials::client_secret() const {
  const Held lock(mutex_);
  return values_.back().bytes;
}

bool Credentials::made_of(const config::OriginSettings& origin) const {
  const bool same_token = token_ ? token_->settings() == origin.oauth2 : origin.oauth2.token_url.empty();
  return origin.origin.label() == label_ && watched(origin) == settings_ && same_token;
}

bool Credentials::sets(std::string_view name) const {
  if (token_ && http::iequals(name, "authorization")) return true;
  return std::any_of(settings_.begin(), settings_.begin() + static_cast<std::ptrdiff_t>(fields_),
                     [&](const config::SetField& field) { return http::iequals(field.name, name); });
}

// The limit of the check at the start also applies to files that grow later.
bool Credentials::fields_fit(const Reading& reading) const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < fields_; ++i) {
    const auto read = reading.find(i);
    const bool fresh = read != reading.end() && read->second;
    bytes += settings_[i].name.size() + (fresh ? read->second->size() : values_[i].bytes.size());
  }
  return bytes <= config::kMaxFieldBytes;
}

std::vector<Credentials::FileEvent> Credentials::check_files() {
  const Held checking(check_mutex_);
  Reading reading;
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    if (!settings_[i].value.file.empty()) reading.emplace(i, usable_value(settings_[i].value));
  }
  const Held lock(mutex_);
  const bool fit = fields_fit(reading);
  std::vector<FileEvent> events;
  for (auto& [i, value] : reading) {
    Value& known = values_[i];
    std::string fault = value ? std::string() : value.fault().detail;
    const bool differs = value && known.bytes != *value;
    if (differs && i < fields_ && !fit) {
      fault = settings_[i].value.file + ": " + too_large_together();
    } else if (differs) {
      std::swap(known.bytes, *value);
    }
    const bool renewed = differs && fault.empty();
    if (renewed || known.fault != fault) events.push_back({settings_[i].name, fault});
    known.fault = std::move(fault);
    if (value) config::wipe(*value);
  }
  // Publishes once, after the last file, so that most requests see related fields change together.
  if (!events.empty()) publish();
  return events;
}

bool Credentials::has_files() const {
  return std::any_of(settings_.begin(), settings_.end(),
                     [](const config::SetField& field) { return !field.value.file.empty(); });
}

std::uint32_t Credentials::stale() const {
  const Held lock(mutex_);
  return static_cast<std::uint32_t>(
      std::count_if(values_.begin(), values_.end(), [](const Value& value) { return !value.fault.empty(); }));
}

}  // namespace carpool::proxy
