#include "proxy/net/dns/channel.h"

#include <algorithm>
#include <climits>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "proxy/net/dns/cares.h"
#include "proxy/net/dns/events.h"
#include "proxy/net/dns/localhost.h"
#include "proxy/net/dns/query.h"
#include "proxy/net/dns/resolver.h"

namespace carpool::proxy::dns {
namespace {

// RFC 8305 §3 recommends 50 ms. This is longer, because it costs a name server that is merely slow one more query.
constexpr Duration kResolutionDelay = std::chrono::milliseconds(250);
constexpr std::uint16_t kTypeAaaa = 28;
constexpr std::uint8_t kNxdomain = 3;
constexpr std::size_t kMaxTcp = 32;  // concurrent lookups over TCP: c-ares needs some 75 KiB for each
constexpr std::size_t kMaxText = std::size_t{64} * 1024;  // limit of resolv.conf

std::string contents_of(const std::string& path) {
  std::string text(kMaxText, '\0');
  std::ifstream file(path);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

LookupResult result_of(int status, int timeouts, const ares_addrinfo* info) {
  LookupResult result{kind_of(status, timeouts), {}, {}, ares_strerror(status)};
  if (status != ARES_SUCCESS || info == nullptr) return result;
  int ttl = INT_MAX;
  for (const auto* cname = info->cnames; cname != nullptr; cname = cname->next) ttl = std::min(ttl, cname->ttl);
  AddressList list;
  for (const auto* node = info->nodes; node != nullptr; node = node->ai_next) {
    ttl = std::min(ttl, node->ai_ttl);
    list.add({node->ai_addr, static_cast<socklen_t>(node->ai_addrlen)});
  }
  list.move_to(result);
  result.ttl = std::chrono::seconds(ttl);
  if (result.addresses.empty()) {  // an alias of a name without any
    result.kind = LookupResult::Kind::absent;
    result.words = ares_strerror(ARES_ENODATA);
  }
  return result;
}

constexpr bool is_error(std::uint8_t rcode) {
  return rcode != 0 && rcode != kNxdomain;
}

// FamilyAnswer: what the name servers answered to the queries for the addresses of one family.
class FamilyAnswer {
 public:
  // An error stands until the same question has another answer: after it c-ares may ask for a search domain.
  void note(const Answered& answered) {
    if (is_error(rcode_) && !is_error(answered.rcode) && question_ != answered.name) return;
    question_ = answered.name;
    rcode_ = answered.rcode;
  }
  std::uint8_t error() const { return is_error(rcode_) ? rcode_ : std::uint8_t{0}; }
  bool none() const { return question_.empty() || is_error(rcode_); }

 private:
  std::string question_;
  std::uint8_t rcode_ = 0;
};

// Corrects what c-ares makes of an error response: SERVFAIL, NOTIMP and REFUSED of every name server become "could not
// contact DNS servers", the codes above become "no data", and any error for one family is forgotten if the answer that
// the other family has no addresses arrives after it. None of it is true: a name server answered, and it did not say
// that the name has no address.
void apply_rcode(int status, std::uint8_t rcode, LookupResult& result) {
  constexpr std::uint8_t kServfail = 2, kNotimp = 4, kRefused = 5;
  const bool absent = result.kind == LookupResult::Kind::absent && status != ARES_ENOTFOUND;
  const bool corrects = status == ARES_ECONNREFUSED || absent;
  if (rcode == 0 || !corrects) return;
  result.kind = LookupResult::Kind::failed;
  result.words = rcode == kServfail  ? "the name server reported a failure (SERVFAIL)"
                 : rcode == kNotimp  ? "the name server does not support the query (NOTIMP)"
                 : rcode == kRefused ? "the name server refused the query (REFUSED)"
                                     : "the name server reported an error";
}

struct TcpTag;
struct AbsoluteTag;

}  // namespace

struct Channel::Impl final : exec::Deferred {
  struct Server;
  struct PendingQuery;

  Impl(exec::Loop& l, const Settings& s) : loop(l), settings(s) {}
  ~Impl();
  void report(metrics::Dns what, std::string_view name) const LOOP_ONLY {
    if (settings.events != nullptr) settings.events->on_dns_event(what, 1, name);
  }
  void follow() LOOP_ONLY;
  void see(const Answered& answered, const std::vector<std::string>& search) LOOP_ONLY;
  void note(std::string_view name, const Answered& answered) LOOP_ONLY;
  void over_tcp(PendingQuery& query) LOOP_ONLY;
  void deliver(PendingQuery& query, LookupResult result) LOOP_ONLY;
  void run() override LOOP_ONLY;

  exec::Loop& loop;
  const Settings& settings;
  CaresOptions options;             // in use
  std::unique_ptr<Server> current;  // nullptr: never queried
  std::vector<std::unique_ptr<Server>> retired;
  std::unordered_map<std::string_view, std::unique_ptr<PendingQuery>> queries;  // keys point into the values
  std::vector<std::unique_ptr<PendingQuery>> over;  // finished, perhaps inside a callback of c-ares
  bool ending = false;                              // no result is delivered any more
  List<PendingQuery, TcpTag> waiting;               // waiting for one of kMaxTcp
  List<PendingQuery, AbsoluteTag> absolute;         // to be queried without search domains
  std::size_t tcp = 0;
};

// Server: c-ares over UDP with one version of resolv.conf.
struct Channel::Impl::Server final : CaresObserver {
  Server(Impl& h, const CaresOptions& options)
      : home(h), cares(h.loop, options, *this), search(cares.search_domains()) {}
  void on_datagram(std::string_view datagram) override LOOP_ONLY {
    if (const std::optional<Answered> answered = question_of(datagram)) home.see(*answered, search);
  }
  void on_cut(std::size_t /*records*/) override {}
  Impl& home;
  std::size_t queries = 0;
  Cares cares;
  const std::vector<std::string> search;  // domains
};

// PendingQuery: the lookup of one name.
struct Channel::Impl::PendingQuery final : CaresObserver, ListHook<TcpTag>, ListHook<AbsoluteTag> {
  PendingQuery(Impl& h, std::string n, Lookup& l)
      : home(h),
        name(std::move(n)),
        lookup(l),
        server(*h.current),
        delay(exec::Timer::bind<&PendingQuery::on_delay>(h.loop, *this)) {}
  void start(Cares& cares) LOOP_ONLY { query(cares, AF_UNSPEC, on_addresses); }
  void query(Cares& cares, int family, ares_addrinfo_callback on_result) LOOP_ONLY;
  void on_delay();
  void on_datagram(std::string_view /*datagram*/) override {}
  void on_cut(std::size_t records) override { cut += records; }
  void expect_rest(std::uint16_t type) LOOP_ONLY;
  void leave_search() LOOP_ONLY;
  void on_udp(LookupResult result) LOOP_ONLY;
  void on_tcp(LookupResult result) LOOP_ONLY;
  bool has_part() const { return udp.kind == LookupResult::Kind::found && !several; }
  static void on_addresses(void* self, int status, int timeouts, ares_addrinfo* info) noexcept;
  static void on_part(void* self, int status, int timeouts, ares_addrinfo* info) noexcept;

  Impl& home;
  const std::string name;
  Lookup& lookup;
  Server& server;
  std::string question;                     // answered over UDP: the name, perhaps with a search domain appended
  bool several = false, truncated = false;  // there were several questions; one response was truncated
  bool is_absolute = false;                 // queried without search domains
  bool is_over = false;                     // delivered; exists only because its part is being queried
  bool asks_part = false;                   // the family that was answered is queried once more, alone
  int part_family = AF_UNSPEC;              // of the first answer
  FamilyAnswer v4, v6;
  exec::Timer delay;  // until the part is delivered
  LookupResult udp;
  std::size_t cut = 0;
  std::unique_ptr<Cares> tcp;  // once it is queried over TCP
};

// c-ares reports the end of each query, so it must be destroyed before them. It reports success for a query of which
// one family was answered.
Channel::Impl::~Impl() {
  ending = true;
  current.reset();
  retired.clear();
}

// Reads resolv.conf before each lookup, as c-ares reads the hosts file, because it may have changed. Lookups in
// progress end on the previous channel.
void Channel::Impl::follow() {
  std::string text = contents_of(settings.resolv_conf);
  if (current != nullptr && current->cares.status() == ARES_SUCCESS && text == options.text) return;
  if (current != nullptr) {
    if (text != options.text) report(metrics::Dns::resolv_conf_changed, {});
    retired.push_back(std::move(current));
    loop.defer(*this);
  }
  options = {settings.resolv_conf, std::move(text), settings.servers, false};
  current = std::make_unique<Server>(*this, options);
}

// The question is the requested name, or that name with a search domain appended. Any other name that begins with a
// requested one may belong to another party, which must not change what is known of the requested one.
void Channel::Impl::see(const Answered& answered, const std::vector<std::string>& search) {
  const std::string_view question = answered.name;
  note(question, answered);
  for (const std::string_view domain : search) {
    if (question.size() < domain.size() + 2 || !question.ends_with(domain)) continue;
    const std::size_t dot = question.size() - domain.size() - 1;
    if (question[dot] == '.') note(question.substr(0, dot), answered);
  }
}

// A false match, of a name that ends with a search domain, costs the shorter name one lookup over TCP, without its
// partial response as a fallback.
void Channel::Impl::note(std::string_view name, const Answered& answered) {
  const auto found = queries.find(name);
  if (found == queries.end()) return;
  PendingQuery& query = *found->second;
  query.truncated |= answered.truncated;
  (answered.type == kTypeAaaa ? query.v6 : query.v4).note(answered);
  if (answered.rcode == 0 && answered.has_answers) query.expect_rest(answered.type);
  query.several |= !query.question.empty() && query.question != answered.name;
  query.question = answered.name;
}

void Channel::Impl::PendingQuery::query(Cares& cares, int family, ares_addrinfo_callback on_result) {
  ares_addrinfo_hints hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  ares_getaddrinfo(cares.get(), (name + (is_absolute ? "." : "")).c_str(), nullptr, &hints, on_result, this);
  cares.flush_and_schedule();
}

// The response of one family has arrived.
void Channel::Impl::PendingQuery::expect_rest(std::uint16_t type) {
  if (part_family != AF_UNSPEC) return;
  part_family = type == kTypeAaaa ? AF_INET6 : AF_INET;
  delay.arm(home.loop.now() + kResolutionDelay);
}

// c-ares keeps the addresses of a family until it has both, so the family is queried once more, alone. If its response
// is truncated, the rest is queried over TCP only once the other family has ended. From then on, also while it waits
// for its turn, the server may be gone.
void Channel::Impl::PendingQuery::on_delay() {
  exec::assume_on_loop();
  if (has_part()) return lookup.on_part(udp);
  if (tcp != nullptr || ListHook<TcpTag>::linked()) return;
  asks_part = true;
  ++server.queries;
  query(server.cares, part_family, on_part);
}

void Channel::Impl::PendingQuery::on_part(void* self, int status, int timeouts, ares_addrinfo* info) noexcept {
  exec::assume_on_loop();
  LookupResult part = result_of(status, timeouts, info);
  if (info != nullptr) ares_freeaddrinfo(info);
  PendingQuery& query = *static_cast<PendingQuery*>(self);
  if (query.home.ending) return;
  query.asks_part = false;
  --query.server.queries;
  query.home.loop.defer(query.home);
  const bool certain = !query.truncated || !query.several;  // as in on_tcp()
  if (!query.is_over && certain && part.kind == LookupResult::Kind::found) query.lookup.on_part(std::move(part));
}

void Channel::Impl::PendingQuery::on_addresses(void* self, int status, int timeouts, ares_addrinfo* info) noexcept {
  exec::assume_on_loop();
  LookupResult result = result_of(status, timeouts, info);
  if (info != nullptr) ares_freeaddrinfo(info);
  PendingQuery& query = *static_cast<PendingQuery*>(self);
  if (query.home.ending) return;
  if (query.tcp != nullptr) return query.on_tcp(std::move(result));
  if (status == ARES_EBADNAME && !query.is_absolute) return query.leave_search();
  apply_rcode(status, query.v4.error() != 0 ? query.v4.error() : query.v6.error(), result);
  query.on_udp(std::move(result));
}

// c-ares ends the lookup if the name and a search domain together are longer than a name may be. The name itself is
// valid.
void Channel::Impl::PendingQuery::leave_search() {
  is_absolute = true;
  home.absolute.push_back(*this);
  home.loop.defer(home);  // not from inside c-ares
}

void Channel::Impl::PendingQuery::on_udp(LookupResult result) {
  --server.queries;
  if (!home.retired.empty()) home.loop.defer(home);
  // The hosts file answers for both.
  result.half = result.kind == LookupResult::Kind::found && v4.none() != v6.none();
  if (!truncated) return home.deliver(*this, std::move(result));
  udp = std::move(result);
  home.waiting.push_back(*this);
  home.loop.defer(home);  // not from inside c-ares
}

void Channel::Impl::PendingQuery::on_tcp(LookupResult result) {
  --home.tcp;
  result.left_out += cut;
  // If TCP fails, a partial set of addresses is better than none, but only if it certainly belongs to this name: after
  // a truncated response without records, c-ares continues with the next search domain.
  const bool conclusive = result.kind == LookupResult::Kind::found || result.kind == LookupResult::Kind::absent;
  home.deliver(*this, !conclusive && has_part() ? std::move(udp) : std::move(result));
}

void Channel::Impl::over_tcp(PendingQuery& query) {
  ++tcp;
  report(metrics::Dns::over_tcp, query.name);
  CaresOptions by_tcp = options;
  by_tcp.tcp = true;
  query.tcp = std::make_unique<Cares>(loop, by_tcp, query);
  const int status = query.tcp->status();
  if (status != ARES_SUCCESS) return query.on_tcp({kind_of(status, 0), {}, {}, ares_strerror(status)});
  if (query.has_part()) query.delay.arm(loop.now() + kResolutionDelay);
  query.start(*query.tcp);
}

// The PendingQuery lives until this turn's deferred work, because c-ares may be calling it.
void Channel::Impl::deliver(PendingQuery& query, LookupResult result) {
  const auto found = queries.find(query.name);
  CARPOOL_ASSERT(found != queries.end());
  query.delay.disarm();
  query.is_over = true;
  over.push_back(std::move(found->second));
  queries.erase(found);
  loop.defer(*this);
  query.lookup.on_result(std::move(result));
}

void Channel::Impl::run() {
  std::erase_if(over, [](const auto& query) { return !query->asks_part; });
  while (!absolute.empty()) {
    PendingQuery& query = absolute.pop_front();
    query.start(query.server.cares);
  }
  std::erase_if(retired, [](const auto& server) { return server->queries == 0; });
  while (tcp < kMaxTcp && !waiting.empty()) over_tcp(waiting.pop_front());
}

Channel::Channel(exec::Loop& loop, const Settings& settings) : impl_(std::make_unique<Impl>(loop, settings)) {}
Channel::~Channel() = default;

void Channel::look_up(const std::string& name, Lookup& lookup) {
  impl_->follow();
  Cares& cares = impl_->current->cares;
  if (cares.status() != ARES_SUCCESS) {
    return lookup.on_result({kind_of(cares.status(), 0), {}, {}, ares_strerror(cares.status())});
  }
  if (std::optional<LookupResult> here = loopback_of(cares.get(), name)) return lookup.on_result(std::move(*here));
  auto made = std::make_unique<Impl::PendingQuery>(*impl_, name, lookup);
  Impl::PendingQuery& query = *made;
  const bool only_one = impl_->queries.emplace(query.name, std::move(made)).second;
  CARPOOL_ASSERT(only_one);
  ++query.server.queries;
  query.start(cares);
}

}  // namespace carpool::proxy::dns
