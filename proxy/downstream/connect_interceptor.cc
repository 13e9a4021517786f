#include "proxy/downstream/connect_interceptor.h"

#include <new>
#include <utility>

#include "proxy/downstream/intercepts.h"
#include "proxy/exchange/authentication.h"
#include "proxy/exchange/client_stream.h"
#include "proxy/exchange/connect_policy.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/overload_state.h"
#include "proxy/http/forward.h"
#include "proxy/net/address.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/loop_stats.h"
#include "proxy/upstream/origin/origin_registry.h"

namespace carpool::proxy {

namespace {

// Returns true if nothing but the origin decides about this CONNECT; others are refused, or answered here, as usual.
bool is_plain(const ExchangeContext& context, const ClientStream& client, const http::RequestHead& request,
              const http::Target& target) {
  const bool sheds = client.accepted_while_shedding() && context.overload.sheds(ShedLevel::new_clients);
  return client.listen().origin.empty() && client.listener().interception() == nullptr && !context.draining && !sheds &&
         !http::via_contains(request.fields, context.pseudonym) && !request.fields.has("max-forwards") &&
         !check_connect(client.listener(), request, target);
}

constexpr std::size_t kMaxAgent = 128;  // thousands of such names may be kept

// Every application of a pod has the same address, so the User-Agent is a part of it. The socket is asked, because
// ClientStream::peer() is empty while no access log is written.
std::string name_of(int fd, std::string_view agent) {
  return net::Address::peer_of(fd).host().append(1, ' ').append(agent.substr(0, kMaxAgent));
}

std::string head_again(const http::RequestHead& request) {
  std::string head("CONNECT ");
  head.append(request.target).append(" HTTP/1.1\r\nHost: ").append(request.target).append("\r\n");
  return head.append("\r\n");
}

}  // namespace

std::unique_ptr<InterceptedConnect> ConnectInterceptor::accept(const ClientStream& client, int fd,
                                                               const http::RequestHead& request, std::size_t more) {
  using What = metrics::Intercept;
  if (intercepts_ == nullptr || request.method != "CONNECT") return nullptr;
  const Result<http::Target> target = http::parse_target(request);
  if (!target || !is_plain(context_, client, request, *target)) return nullptr;
  Result<pool::Origin> origin = pool::canonical_origin(pool::Scheme::https, target->authority);
  if (!origin) return nullptr;
  const std::optional<ListenerIdentity> leaf = intercepts_->leaf(origin->label());
  if (!leaf) return nullptr;
  std::string user;
  const auto admitted = authenticate(client.listener(), request.fields, user);
  if (admitted.value_or(metrics::Authentication::accepted) != metrics::Authentication::accepted) return nullptr;
  const Result<OriginRuntime*> runtime = context_.origins.enter(*origin);
  if (!runtime) return nullptr;

  auto connect = std::make_unique<InterceptedConnect>();
  connect->slot = (*runtime)->slot;
  context_.stats.open_counters(connect->slot);
  connect->client = name_of(fd, request.fields.get("user-agent"));
  const auto tunnels = [&](What why) LOOP_ONLY {
    count(*connect, why);
    return nullptr;
  };
  if (client.secured()) return tunnels(What::in_tls);
  if (*leaf == nullptr) return tunnels(What::no_leaf);
  if (intercepts_->refused_before(origin->label(), connect->client, context_.loop.now())) {
    return tunnels(What::distrusted);
  }
  if (more != 0) return tunnels(What::early);
  connect->identity = *leaf;
  connect->head = head_again(request);
  if (admitted) context_.stats.count_authentication(*admitted);
  connect->point = std::make_unique<ListenPoint>(client.listener(), Interception{std::move(*origin)}, user);
  connect->user = std::move(user);
  return connect;
}

void ConnectInterceptor::count(const InterceptedConnect& connect, metrics::Intercept what) {
  context_.stats.count_intercept(connect.slot, what);
}

void ConnectInterceptor::on_refusal(const InterceptedConnect& connect) {
  count(connect, metrics::Intercept::refused);
  try {
    note_refusal(connect);
  } catch (const std::bad_alloc&) {  // its next refusal is noted
  }
}

void ConnectInterceptor::note_refusal(const InterceptedConnect& connect) {
  const std::string& label = connect.point->interception()->origin.label();
  const bool first = intercepts_->note_refusal(label, connect.client, context_.loop.now());
  if (!first) return;
  const char* const then =
      intercepts_->tunnels_after_refusal() ? "it gets tunnels for ten minutes" : "its CONNECT fails";
  log::warn(
      "intercept",
      "a client does not accept carpool's certificate; add the bundle of `carpool ca bundle` to what it trusts, or "
      "leave out intercept for this origin",
      {{"origin", label}, {"client", connect.client}, {"consequence", then}});
}

}  // namespace carpool::proxy
