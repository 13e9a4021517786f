#include "proxy/downstream/connect_interceptor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <utility>

#include "base/utf8.h"
#include "proxy/downstream/client_identity.h"
#include "proxy/downstream/intercepts.h"
#include "proxy/exchange/authentication.h"
#include "proxy/exchange/client_stream.h"
#include "proxy/exchange/connect_policy.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/http/forward.h"
#include "proxy/net/address.h"
#include "proxy/net/tls/client_hello.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

namespace {

// Returns true if only the origin decides about this CONNECT. Others are refused or answered in the usual way.
bool is_plain(const ExchangeContext& context, const ClientStream& client, const http::RequestHead& request,
              const http::Target& target) {
  const bool shedding = client.accepted_while_shedding() && context.overload.is_shedding(ShedLevel::new_clients);
  return client.listen().origin.empty() && client.listener().interception() == nullptr && !shedding &&
         !http::via_contains(request.fields, context.pseudonym) && !check_connect(client.listener(), request, target);
}

constexpr std::size_t kMaxAgent = 128;  // limits memory: thousands of such names may be kept
// A client that verifies the certificate after the handshake closes at once; one that closes later may just have no
// request.
constexpr Duration kAtOnce = std::chrono::seconds(5);

// Returns the address that a PROXY header announced, otherwise that of the socket, because ClientStream::peer() is
// empty while no access log is written.
std::string host_of(const ClientStream& client) {
  if (!client.listen().proxy_protocol) return net::Address::peer_of(client.socket()).host();
  return std::string(announced_host(client.peer()));
}

// The name contains the User-Agent, because all applications of a pod have the same address.
std::string name_of(const ClientStream& client, std::string_view agent) {
  return host_of(client).append(1, ' ').append(clipped(agent, kMaxAgent));
}

metrics::TlsOffer offer_of(const tls::ClientHello& hello) {
  using enum metrics::TlsOffer;
  if (hello.offers_h2) return hello.offers_tls13 ? tls13_h2 : tls12_h2;
  if (hello.offers_h1) return hello.offers_tls13 ? tls13_h1 : tls12_h1;
  return hello.offers_tls13 ? tls13 : tls12;
}

// Maps the alert of TLS (RFC 8446 §6).
metrics::CertificateAlert kind_of(std::uint8_t alert) {
  switch (alert) {
    case 0:
      return metrics::CertificateAlert::none;
    case 42:
      return metrics::CertificateAlert::bad_certificate;
    case 46:
      return metrics::CertificateAlert::certificate_unknown;
    case 48:
      return metrics::CertificateAlert::unknown_ca;
    default:
      return metrics::CertificateAlert::other;
  }
}

// The fields of a CONNECT that its tunnel uses: the proxies before this one, the priority class, the trace, and what
// the access log shows.
bool used_by_tunnel(std::string_view name) {
  constexpr std::array<std::string_view, 4> kUsed{"priority", "traceparent", "user-agent", "via"};
  return std::any_of(kUsed.begin(), kUsed.end(), [name](std::string_view used) { return http::iequals(used, name); });
}

std::string head_again(const http::RequestHead& request) {
  std::string head("CONNECT ");
  head.append(request.target).append(" HTTP/1.1\r\nHost: ").append(request.target).append("\r\n");
  for (std::size_t i = 0; i < request.fields.size(); ++i) {
    if (used_by_tunnel(request.fields[i].name)) head.append(request.fields.lines(i, i + 1));
  }
  return head.append("\r\n");
}

}  // namespace

ConnectInterceptor::Decision ConnectInterceptor::accept(const ClientStream& client, const http::RequestHead& request,
                                                        std::optional<metrics::Intercept> obstacle) {
  using What = metrics::Intercept;
  if (intercepts_ == nullptr || !request.has_method("CONNECT")) return {};
  const Result<http::Target> target = http::parse_target(request);
  if (!target || !is_plain(context_, client, request, *target)) return {};
  Result<pool::Origin> origin = pool::canonical_origin(pool::Scheme::https, target->authority);
  if (!origin) return {};
  std::optional<Intercepts::Leaf> leaf = intercepts_->leaf(origin->label());
  if (!leaf) return {};
  std::string user;
  const auto admitted = authenticate(client.listener(), request.fields, user);
  if (admitted.value_or(metrics::Authentication::accepted) != metrics::Authentication::accepted) return {};
  const Result<OriginRuntime*> runtime = context_.origins.enter(*origin);
  if (!runtime) return {};

  const metrics::OriginSlot slot = (*runtime)->slot;
  context_.stats.open_counters(slot);
  if (!obstacle && !is_in_time(leaf->identity, std::chrono::system_clock::now())) obstacle = What::no_leaf;
  if (obstacle) {
    context_.stats.count(slot, *obstacle);
    return {nullptr, obstacle};
  }
  auto connect = std::make_unique<InterceptedConnect>();
  connect->slot = slot;
  connect->identity = std::move(leaf->identity);
  connect->head = head_again(request);
  if (admitted) context_.stats.count(*admitted);
  Interception inside{std::move(*origin), leaf->authority, {name_of(client, request.fields.get("user-agent"))}};
  connect->point = std::make_unique<ListenPoint>(client.listener(), std::move(inside), user);
  connect->user = std::move(user);
  return {std::move(connect), std::nullopt};
}

void ConnectInterceptor::count(const InterceptedConnect& connect, metrics::Intercept what) {
  context_.stats.count(connect.slot, what);
}

bool ConnectInterceptor::distrusts(InterceptedConnect& connect, const tls::ClientHello& hello) {
  Interception& inside = *connect.point->interception();
  inside.client.offer = offer_of(hello);
  inside.client.suites = hello.suites;
  return intercepts_ != nullptr && intercepts_->refused_before(inside, context_.loop.now());
}

void ConnectInterceptor::on_refusal(const InterceptedConnect& connect, std::uint8_t alert) {
  const metrics::CertificateAlert kind = kind_of(alert);
  const bool proven = note_refusal(*connect.point->interception(), kind) || alert != 0;
  count(connect, proven ? metrics::Intercept::refused : metrics::Intercept::failed);
}

void ConnectInterceptor::on_use(const Interception& inside) {
  if (intercepts_ != nullptr) intercepts_->note_trust(inside);
}

void ConnectInterceptor::on_unused(const Interception& inside) {
  if (context_.loop.now() - inside.since > kAtOnce) return;
  static_cast<void>(note_refusal(inside, metrics::CertificateAlert::none));
}

bool ConnectInterceptor::in_force(const Interception& inside) const {
  return intercepts_ == nullptr || intercepts_->in_force(inside);
}

// Returns true for a refusal, false for a suspicion.
bool ConnectInterceptor::note_refusal(const Interception& inside, metrics::CertificateAlert alert) {
  if (intercepts_ == nullptr) return false;
  try {
    const Intercepts::Noted noted = intercepts_->note_refusal(inside, alert, context_.loop.now());
    if (noted == Intercepts::Noted::first_refusal) warn(inside, alert);
    return noted != Intercepts::Noted::suspicion;
  } catch (const std::bad_alloc&) {  // the next refusal is recorded
    return false;
  }
}

void ConnectInterceptor::warn(const Interception& inside, metrics::CertificateAlert alert) const {
  const char* const then =
      intercepts_->tunnels_after_refusal() ? "it gets tunnels for ten minutes" : "its CONNECT fails";
  log::warn(
      "intercept",
      "a client does not accept carpool's certificate; add the bundle of `carpool ca bundle` to its trust store, or "
      "remove intercept from this origin",
      {{"origin", inside.origin.label()},
       {"client", inside.client.name},
       {"offer", std::string(metrics::kTlsOffers[static_cast<std::size_t>(inside.client.offer)])},
       {"alert", std::string(metrics::kCertificateAlerts[static_cast<std::size_t>(alert)])},
       {"consequence", then}});
}

}  // namespace carpool::proxy
