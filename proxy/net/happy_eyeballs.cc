#include "proxy/net/happy_eyeballs.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "proxy/net/address_policy.h"

namespace carpool::proxy::net {
namespace {

constexpr Duration kAttemptDelay = std::chrono::milliseconds(250);
constexpr std::size_t kMaxAddresses = 16;
constexpr Duration kFullQueueDelay = std::chrono::milliseconds(5);  // twice as long each time
constexpr Duration kMaxFullQueueDelay = std::chrono::milliseconds(80);

void set(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

// Detects a vanished peer within about two minutes, even if no data is sent. The kernel ends a Unix socket with its
// peer.
void tune(int fd, int family) {
  if (family == AF_UNIX) return;
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 15);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

FaultKind kind_of(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ENOENT:  // of a Unix socket
      return FaultKind::connect_refused;
    case ETIMEDOUT:
      return FaultKind::connect_timeout;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENOSPC:
      return FaultKind::budget;
    default:
      return FaultKind::unroutable;
  }
}

// Weights of failures: the race reports the one with the highest. An address of carpool itself is the lasting cause,
// whatever refuses beside it. Otherwise the failure closest to success counts: a permitted address that refused may
// accept the next time, so a denial of other addresses is not the cause. An address without a route from this machine
// is as good as none, so a denial is the cause then.
constexpr int kNoRoute = 0, kDenied = 1, kUnroutable = 2, kTimedOut = 3, kRefused = 4, kOwnAddress = 5, kBudget = 6;

int weight_of(FaultKind kind, int error) {
  switch (kind) {
    case FaultKind::budget:
      return kBudget;
    case FaultKind::connect_refused:
      return kRefused;
    case FaultKind::connect_timeout:
      return kTimedOut;
    default:
      return error == ENETUNREACH || error == EADDRNOTAVAIL || error == EAFNOSUPPORT ? kNoRoute : kUnroutable;
  }
}

// EADDRNOTAVAIL has two causes: no local port is left for the address, or this machine has no address to reach it from,
// as without IPv6. UDP has ports of its own, so that only the second cause lets it fail.
bool no_port_left(const Address& address, int error) {
  if (error != EADDRNOTAVAIL) return false;
  const Fd probe(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return probe && ::connect(probe.get(), address.get(), address.length()) == 0;
}

// Returns a description of the failure that an operator can act on.
std::string failure_text(const Address& address, int error) {
  const std::string reason = std::generic_category().message(error);
  if (address.family() != AF_UNIX) return "TCP connect to " + address.text() + ": " + reason;
  std::string text = "connect to " + address.text() + ": " + reason;
  if (error == ENOENT) text += ": the socket's file does not exist in this process's file system";
  if (error == ECONNREFUSED) text += ": no process listens on the socket";
  if (error == EACCES) text += ": this process may not write to the socket, or not enter its directory";
  return text;
}

}  // namespace

std::vector<Address> interleave(const std::vector<Address>& addresses) {
  std::vector<Address> first, second, out;
  for (const Address& address : addresses) {
    (address.family() == addresses.front().family() ? first : second).push_back(address);
  }
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) out.push_back(first[i]);
    if (i < second.size()) out.push_back(second[i]);
  }
  return out;
}

struct HappyEyeballs::Attempt final : exec::Watcher {
  Attempt(HappyEyeballs& r, const Address& a, Fd s) : race(r), address(a), socket(std::move(s)) {}
  void on_ready(exec::Ready ready) override LOOP_ONLY { race.on_attempt(*this, ready.hangup); }
  HappyEyeballs& race;
  const Address address;
  Fd socket;
  exec::WatchKey key;
};

HappyEyeballs::HappyEyeballs(exec::Loop& loop, const pool::Origin& origin, const AddressPolicy* policy,
                             const std::vector<Address>& addresses, RaceOwner& owner)
    : loop_(loop),
      origin_(origin),
      policy_(policy),
      owner_(owner),
      addresses_(interleave(addresses)),
      how_many_(std::min(addresses.size(), kMaxAddresses)),
      full_delay_(kFullQueueDelay),
      delay_(exec::Timer::bind<&HappyEyeballs::on_delay>(loop, *this)) {
  if (addresses_.size() > kMaxAddresses) addresses_.resize(kMaxAddresses);
}

HappyEyeballs::~HappyEyeballs() {
  exec::assume_on_loop();
  while (!attempts_.empty()) drop(*attempts_.back());
}

void HappyEyeballs::start() {
  begin_next();
}

// The late family goes first among those not tried yet, because the other one has had its time.
void HappyEyeballs::add(const std::vector<Address>& addresses) {
  std::vector<Address> untried;
  for (const Address& address : addresses) {
    if (std::find(addresses_.begin(), addresses_.end(), address) == addresses_.end()) untried.push_back(address);
  }
  if (untried.empty()) return;
  how_many_ = std::min(how_many_ + untried.size(), kMaxAddresses);
  const auto tried = addresses_.begin() + static_cast<std::ptrdiff_t>(next_);
  untried.insert(untried.end(), tried, addresses_.end());
  addresses_.erase(tried, addresses_.end());
  untried = interleave(untried);
  untried.resize(std::min(untried.size(), kMaxAddresses - next_));
  addresses_.insert(addresses_.end(), untried.begin(), untried.end());
  if (!delay_.armed()) delay_.arm(std::max(loop_.now(), last_began_ + kAttemptDelay));
}

std::string HappyEyeballs::pending() const {
  std::string out;
  for (const Address& address : waiting_for()) out += (out.empty() ? "" : ", ") + address.text();
  if (!full_.empty()) return "connect to " + out + ", whose accept queue is full,";
  return "TCP connect to " + out;
}

std::vector<Address> HappyEyeballs::waiting_for() const {
  std::vector<Address> all = full_;
  for (const auto& attempt : attempts_) all.push_back(attempt->address);
  return all;
}

void HappyEyeballs::on_delay() {
  exec::assume_on_loop();
  if (next_ == addresses_.size() && !full_.empty()) try_full_queues_again();
  begin_next();
}

void HappyEyeballs::try_full_queues_again() {
  addresses_ = std::exchange(full_, {});
  next_ = 0;
  full_delay_ = std::min(2 * full_delay_, kMaxFullQueueDelay);
}

// Starts the next attempt that is permitted and does not fail immediately; if no address and no attempt is left, the
// race ends.
void HappyEyeballs::begin_next() {
  while (next_ < addresses_.size()) {
    if (!begin(addresses_[next_++])) continue;
    if (next_ < addresses_.size()) return delay_.arm(loop_.now() + kAttemptDelay);
    break;
  }
  if (!full_.empty()) return delay_.arm(loop_.now() + full_delay_);
  if (attempts_.empty()) finish();
}

bool HappyEyeballs::begin(const Address& address) {
  if (policy_ != nullptr) {
    if (auto allowed = policy_->may_dial(origin_, address); !allowed) {
      note_fault(allowed.take_fault(), policy_->is_own(address) ? kOwnAddress : kDenied);
      return false;
    }
  }
  Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return note_failure(address, errno), false;
  tune(socket.get(), address.family());
  if (::connect(socket.get(), address.get(), address.length()) != 0 && errno != EINPROGRESS) {
    if (errno == EAGAIN && address.family() == AF_UNIX) return full_.push_back(address), false;
    return note_failure(address, errno), false;
  }
  auto attempt = std::make_unique<Attempt>(*this, address, std::move(socket));
  auto key = loop_.watch(attempt->socket.get(), *attempt);
  if (!key) return note_fault(key.take_fault(), kBudget), false;
  attempt->key = *key;
  attempts_.push_back(std::move(attempt));
  last_began_ = loop_.now();
  return true;
}

void HappyEyeballs::on_attempt(Attempt& attempt, bool hangup) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(attempt.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  const Address local = Address::local_of(attempt.socket.get());
  const Address peer = Address::peer_of(attempt.socket.get());
  if (error == 0 && peer.empty()) {
    if (!hangup) return;  // not yet
    error = ECONNRESET;
  }
  if (error == 0 && local == peer) error = ECONNREFUSED;  // TCP self-connect: no socket listens on that ephemeral port
  if (error != 0) {
    note_failure(attempt.address, error);
    drop(attempt);
    return begin_next();
  }
  // Earlier attempts had more time and got no response.
  for (const auto& other : attempts_) {
    if (other.get() == &attempt) break;
    owner_.on_attempt_failed(other->address);
  }
  Winner winner{Fd(), attempt.address, local};
  loop_.unwatch(attempt.socket.get(), attempt.key);
  winner.socket = std::move(attempt.socket);
  while (!attempts_.empty()) drop(*attempts_.back());
  delay_.disarm();
  owner_.on_race(std::move(winner));
}

void HappyEyeballs::drop(Attempt& attempt) {
  if (attempt.socket) loop_.unwatch(attempt.socket.get(), attempt.key);
  std::erase_if(attempts_, [&attempt](const auto& a) { return a.get() == &attempt; });
}

// A lack of this machine is no failure of the address. Closing another connection frees a descriptor or memory, which
// Side::self states, but no local port.
void HappyEyeballs::note_failure(const Address& address, int error) {
  const bool no_port = no_port_left(address, error);
  const FaultKind kind = no_port ? FaultKind::budget : kind_of(error);
  if (kind != FaultKind::budget) owner_.on_attempt_failed(address);
  Fault fault(kind, kind == FaultKind::budget && !no_port ? Side::self : Side::upstream, failure_text(address, error));
  if (no_port) fault.detail += ": no local port is left for this address (net.ipv4.ip_local_port_range)";
  note_fault(std::move(fault), weight_of(kind, error));
}

void HappyEyeballs::note_fault(Fault fault, int weight) {
  if (worst_ && weight_ > weight) return;
  weight_ = weight;
  worst_ = std::make_unique<Fault>(std::move(fault));
}

std::optional<Fault> HappyEyeballs::own_address_fault() const {
  return worst_ && weight_ == kOwnAddress ? std::optional(*worst_) : std::nullopt;
}

void HappyEyeballs::finish() {
  delay_.disarm();
  Fault fault = worst_ ? std::move(*worst_)
                       : Fault(FaultKind::dns_error, Side::upstream, origin_.host + ": no address to connect to");
  if (how_many_ > 1) fault.detail += " (" + std::to_string(how_many_) + " addresses)";
  owner_.on_race(std::move(fault));
}

}  // namespace carpool::proxy::net
