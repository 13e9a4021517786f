#include "proxy/net/dns/resolver.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "proxy/net/dns/channel.h"
#include "proxy/net/dns/events.h"
#include "proxy/net/dns/known_names.h"

namespace carpool::proxy::dns {
namespace {

using Addresses = std::vector<net::Address>;

constexpr std::size_t kMaxNames = 4096;
// The minimum interval of queries for one name to a failing name server.
constexpr Duration kFailureTtl = std::chrono::seconds(1);
// While a refresh is running, a stale result is held back for at most this long; after that or after a failure later
// questions do not wait (RFC 8767 §5: client response timer, failure recheck timer).
constexpr Duration kTimeout = std::chrono::milliseconds(500);
constexpr Duration kFailing = std::chrono::seconds(30);
constexpr Instant kPast = Instant::min();
// If no name server is reachable: retries after 50, 100, ..., 800 ms, as far as the deadline of the dial permits.
constexpr Duration kFirstPause = std::chrono::milliseconds(50);
constexpr int kMaxRequeries = 5;

Fault fault_of(const std::string& host, const LookupResult& result) {
  const bool late = result.kind == LookupResult::Kind::timed_out;
  return {late ? FaultKind::dns_timeout : FaultKind::dns_error, Side::upstream,
          host + ": " + std::string(result.words)};
}

std::set<int> families_of(const Addresses& addresses) {
  std::set<int> families;
  for (const net::Address& address : addresses) families.insert(address.family());
  return families;
}

struct DueTag;
struct AgeTag;

}  // namespace

struct Resolver::Impl final : exec::Deferred {
  struct Name;

  Impl(exec::Loop& l, const Settings& s) : loop(l), settings(s), channel(l, settings) {}

  void ask(std::string_view host, Question& question) LOOP_ONLY;
  Name& at(std::string_view host);
  void make_room();
  void refresh(Name& name, Instant now) LOOP_ONLY;
  void learn(Name& name, LookupResult result) LOOP_ONLY;
  void learn_part(Name& name, LookupResult part) LOOP_ONLY;
  void keep(Name& name, LookupResult found, Instant now);
  void keep_half(Name& name, LookupResult found, Instant now);
  void adopt(Name& name, Instant now);
  bool ask_again(Name& name) LOOP_ONLY;
  void on_pause_over(Name& name) LOOP_ONLY;
  void report(metrics::Dns what, std::uint64_t n, const Name& name) const LOOP_ONLY;
  void refuse(Name& name, const LookupResult& result, Instant now);
  void make_due(Name& name) LOOP_ONLY;
  void run() override LOOP_ONLY;
  void deliver(Name& name) LOOP_ONLY;

  exec::Loop& loop;
  Settings settings;
  std::unordered_map<std::string_view, std::unique_ptr<Name>> names;  // keys point into the Names
  List<Name, DueTag> due;
  List<Name, AgeTag> by_age;  // last used at the back
  Channel channel;            // destroyed first: its lookups are Names
};

// Name: a requested name with its cached result and the pending questions.
struct Resolver::Impl::Name final : Lookup, ListHook<DueTag>, ListHook<AgeTag> {
  Name(Impl& h, std::string_view n)
      : home(h),
        host(n),
        timeout(exec::Timer::bind<&Name::on_timeout>(h.loop, *this)),
        pause(exec::Timer::bind<&Name::on_pause>(h.loop, *this)) {}
  void on_result(LookupResult result) override LOOP_ONLY { home.learn(*this, std::move(result)); }
  void on_part(LookupResult part) override LOOP_ONLY { home.learn_part(*this, std::move(part)); }
  void on_timeout() {
    exec::assume_on_loop();
    failing_until = home.loop.now() + kFailing;
    home.make_due(*this);
  }
  void on_pause() {
    exec::assume_on_loop();
    home.on_pause_over(*this);
  }
  bool busy() const { return asking || !waiting.empty(); }
  bool known(Instant now) const { return partial || undelivered || now < fresh_until; }
  bool stale_usable(Instant now) const { return !addresses.empty() && now < stale_until; }

  Impl& home;
  const std::string host;
  Addresses addresses;
  Instant fresh_until = kPast, stale_until = kPast;
  std::optional<Fault> refusal;
  Instant refused_until = kPast;
  Instant failing_until = kPast;
  bool asking = false;
  bool partial = false;      // `addresses` is a part of the result of the current lookup
  bool undelivered = false;  // `addresses` is new: the questions that wait get it even if its TTL is zero
  int requeries = 0;         // of the current lookup
  List<Question, QuestionTag> waiting, awaiting_rest;
  exec::Timer timeout, pause;
};

void Resolver::Impl::ask(std::string_view host, Question& question) {
  Name& name = at(host);
  const Instant now = loop.now();
  name.waiting.push_back(question);
  // A result that is about to be delivered answers this question too.
  const bool due_already = static_cast<ListHook<DueTag>&>(name).linked();
  if (due_already || name.known(now) || now < name.refused_until) return make_due(name);
  if (!name.stale_usable(now)) adopt(name, now);
  refresh(name, now);
  if (!name.stale_usable(now)) return;
  if (now < name.failing_until) return make_due(name);
  if (!name.timeout.armed()) name.timeout.arm(now + kTimeout);
}

auto Resolver::Impl::at(std::string_view host) -> Name& {
  const auto found = names.find(host);
  Name* name = nullptr;
  if (found != names.end()) {
    name = found->second.get();
    static_cast<ListHook<AgeTag>*>(name)->unlink();
  } else {
    make_room();
    auto made = std::make_unique<Name>(*this, host);
    name = made.get();
    names.emplace(name->host, std::move(made));
  }
  by_age.push_back(*name);
  return *name;
}

void Resolver::Impl::make_room() {
  if (names.size() < kMaxNames) return;
  Name* oldest = by_age.next(nullptr);
  while (oldest != nullptr && oldest->busy()) oldest = by_age.next(oldest);
  // If all are in use there is no need to evict: each pending dial holds a pool slot, which bounds them.
  if (oldest != nullptr) names.erase(oldest->host);
}

void Resolver::Impl::refresh(Name& name, Instant now) {
  if (name.asking || now < name.refused_until) return;
  name.asking = true;
  name.requeries = 0;
  channel.look_up(name.host, name);
}

void Resolver::Impl::learn(Name& name, LookupResult result) {
  const Instant now = loop.now();
  if (result.kind == LookupResult::Kind::unreachable && ask_again(name)) return;
  name.asking = name.partial = false;
  name.timeout.disarm();
  name.waiting.splice_back(name.awaiting_rest);
  if (result.kind == LookupResult::Kind::found) {
    if (result.left_out > 0) report(metrics::Dns::addresses_left_out, result.left_out, name);
    result.half ? keep_half(name, std::move(result), now) : keep(name, std::move(result), now);
  } else {
    refuse(name, result, now);
  }
  make_due(name);
}

void Resolver::Impl::keep(Name& name, LookupResult found, Instant now) {
  name.addresses = std::move(found.addresses);
  name.fresh_until = now + std::clamp(found.ttl, settings.min_ttl, std::max(settings.min_ttl, settings.max_ttl));
  name.stale_until = name.fresh_until + settings.stale_for;
  name.undelivered = true;
  name.refusal.reset();
  name.refused_until = name.failing_until = kPast;
  if (settings.known != nullptr) settings.known->note(name.host, name.addresses, now, name.stale_until);
}

// Takes the addresses that another loop knows as stale ones.
void Resolver::Impl::adopt(Name& name, Instant now) {
  if (settings.known == nullptr) return;
  KnownNames::Known known = settings.known->find(name.host, now);
  if (known.addresses.empty()) return;
  name.addresses = std::move(known.addresses);
  name.stale_until = known.until;
}

// Cached addresses complete those of one family with the other one, of which no name server has said anything. They are
// used for no longer than without this result.
void Resolver::Impl::keep_half(Name& name, LookupResult found, Instant now) {
  const std::size_t before = found.addresses.size();
  const Instant until = name.stale_until;
  if (name.stale_usable(now)) {
    const auto missing = [families = families_of(found.addresses)](const net::Address& address) {
      return families.count(address.family()) == 0;
    };
    std::copy_if(name.addresses.begin(), name.addresses.end(), std::back_inserter(found.addresses), missing);
  }
  const bool completed = found.addresses.size() != before;
  keep(name, std::move(found), now);
  if (!completed) return;
  name.stale_until = std::max(until, name.fresh_until);
  if (settings.known != nullptr) settings.known->note(name.host, name.addresses, now, name.stale_until);
}

// The lookup goes on; its result replaces the part.
void Resolver::Impl::learn_part(Name& name, LookupResult part) {
  name.timeout.disarm();
  name.partial = true;
  keep_half(name, std::move(part), loop.now());
  make_due(name);
}

void Resolver::Impl::refuse(Name& name, const LookupResult& result, Instant now) {
  name.refusal = fault_of(name.host, result);
  name.failing_until = now + kFailing;
  // An authoritative "does not exist" invalidates the cached addresses; a failing name server does not.
  const bool absent = result.kind == LookupResult::Kind::absent;
  if (absent) name.addresses.clear();
  if (absent) name.fresh_until = kPast;  // of a part that this lookup gave
  if (absent && settings.known != nullptr) settings.known->forget(name.host);
  // A timeout is not cached as negative, so the next question queries again, unless a stale result can be served
  // meanwhile.
  const bool answered = absent || result.kind == LookupResult::Kind::failed;
  if (answered || name.stale_usable(now)) name.refused_until = now + (absent ? settings.negative_ttl : kFailureTtl);
}

void Resolver::Impl::report(metrics::Dns what, std::uint64_t n, const Name& name) const {
  if (settings.events != nullptr) settings.events->on_dns_event(what, n, name.host);
}

// Schedules another query: the name server may be restarting, or the network may not be up yet. Returns false if none
// follows.
bool Resolver::Impl::ask_again(Name& name) {
  const Instant now = loop.now();
  if (name.waiting.empty() || name.stale_usable(now) || name.requeries == kMaxRequeries) return false;
  name.pause.arm(now + kFirstPause * (1 << name.requeries++));
  return true;
}

void Resolver::Impl::on_pause_over(Name& name) {
  if (name.waiting.empty()) {
    name.asking = false;
    return;
  }
  report(metrics::Dns::asked_again, 1, name);
  channel.look_up(name.host, name);
}

// Questions get their result from the loop's deferred work, never from inside ask() or c-ares.
void Resolver::Impl::make_due(Name& name) {
  if (!static_cast<ListHook<DueTag>&>(name).linked()) due.push_back(name);
  loop.defer(*this);
}

void Resolver::Impl::run() {
  List<Name, DueTag> now_due;  // names that become due inside a callback wait for the next turn
  now_due.splice_back(due);
  while (!now_due.empty()) deliver(now_due.pop_front());
}

void Resolver::Impl::deliver(Name& name) {
  const Instant now = loop.now();
  const bool usable = name.known(now) || name.stale_usable(now);
  name.undelivered = false;
  if (!usable && (name.asking || !name.refusal)) {
    // The next result answers: that of the lookup in progress, or of a new one if this result has expired since it
    // became due. A refusal is older than the lookup in progress.
    if (!name.waiting.empty()) refresh(name, now);
    return;
  }
  List<Question, QuestionTag> asked;  // questions added inside a callback wait for the next result
  asked.splice_back(name.waiting);
  const Result<Addresses> result = usable ? Result<Addresses>(name.addresses) : Result<Addresses>(*name.refusal);
  while (!asked.empty()) asked.pop_front().on_addresses(result);
}

Resolver::Resolver(exec::Loop& loop, const Settings& settings) : impl_(std::make_unique<Impl>(loop, settings)) {}
Resolver::~Resolver() = default;

void Resolver::ask(std::string_view host, Question& question) {
  impl_->ask(host, question);
}

void Resolver::await_rest(std::string_view host, Question& question) {
  const auto found = impl_->names.find(host);
  if (found != impl_->names.end() && found->second->partial) found->second->awaiting_rest.push_back(question);
}

void Resolver::mark_stale(std::string_view host) {
  const auto found = impl_->names.find(host);
  if (found != impl_->names.end()) found->second->fresh_until = kPast;
}

void Resolver::set_ttls(Duration min_ttl, Duration max_ttl, Duration stale_for, Duration negative_ttl) {
  impl_->settings.negative_ttl = negative_ttl;
  impl_->settings.min_ttl = min_ttl;
  impl_->settings.max_ttl = max_ttl;
  impl_->settings.stale_for = stale_for;
}

}  // namespace carpool::proxy::dns
