#include "proxy/commands/demo/demo.h"

#include <sys/socket.h>
#include <unistd.h>

#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "pool/origin.h"

namespace carpool::proxy {
namespace {

// `addresses` maps the name to the origin's actual port, so that the name is the same in every run.
config::OriginSettings named(const config::Config& config, const std::string& scheme, const std::string& name,
                             const net::Address& at) {
  config::OriginSettings settings;
  settings.origin = *pool::parse_origin(scheme + "://" + name);
  settings.alias = {name};
  settings.addresses = {at.text()};
  settings.pool = config.pool;
  settings.request = config.request;
  settings.upstream = config.upstream;
  return settings;
}

}  // namespace

// Binds as the listener does, so that a port in TIME_WAIT counts as free.
std::string free_or_any_port(const std::string& text) {
  const Result<net::Address> address = net::Address::parse(text);
  if (!address) return "127.0.0.1:0";
  const Fd fd(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  const bool free = fd && ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                    ::bind(fd.get(), address->get(), address->length()) == 0 && ::listen(fd.get(), 1) == 0;
  return free ? text : "127.0.0.1:0";
}

config::Config demo_config(const DemoOrigin& origin, config::Config config) {
  config.listen.front().address = free_or_any_port(config.listen.front().address);
  config.admin.address = free_or_any_port(config.admin.address);
  config.log.format = config::LogFormat::text;
  config.log.access = false;  // a line per request would make the demo's own output hard to find
  config.origins.push_back(named(config, "http", DemoOrigin::kPlainName, origin.plain()));
  std::uint32_t identity = 0;
  for (const auto& [name, at] :
       {std::pair(DemoOrigin::kTlsName, &origin.secure()), std::pair(DemoOrigin::kH2Name, &origin.h2())}) {
    config::OriginSettings& secure = config.origins.emplace_back(named(config, "https", name, *at));
    secure.upstream.tls.ca_file = origin.ca_file();
    secure.upstream.tls.server_name = name;
    secure.origin.tls = ++identity;  // a TLS identity of its own
  }
  return config;
}

Result<std::unique_ptr<Demo>> Demo::make(std::FILE* out) {
  Result<std::unique_ptr<DemoOrigin>> origin = DemoOrigin::start();
  if (!origin) return origin.take_fault();
  return std::make_unique<Demo>(std::move(*origin), out);
}

Demo::Demo(std::unique_ptr<DemoOrigin> origin, std::FILE* out)
    : origin_(std::move(origin)), config_(demo_config(*origin_)), out_(out) {}

Status Demo::start(const net::Address& listener, const net::Address& admin, std::function<DemoNumbers()> numbers) {
  std::fputs(demo_greeting(listener, admin, *origin_).c_str(), out_);
  std::fflush(out_);
  auto traffic = DemoTraffic::start(listener);
  if (!traffic) return traffic.take_fault();
  traffic_ = std::move(*traffic);
  const auto with_failures = [this, counted = std::move(numbers)] {
    DemoNumbers all = counted();
    all.failed = traffic_->counts().failed;
    return all;
  };
  auto ticker = Ticker::start(with_failures, out_);
  if (!ticker) return ticker.take_fault();
  ticker_ = std::move(*ticker);
  auto keyboard = Keyboard::start(STDIN_FILENO, out_, *origin_, admin.text());
  if (!keyboard) return keyboard.take_fault();
  keyboard_ = std::move(*keyboard);
  return Done{};
}

void Demo::stop() {
  keyboard_.reset();
  ticker_.reset();
  traffic_.reset();
}

std::string demo_greeting(const net::Address& listener, const net::Address& admin, const DemoOrigin& origin) {
  std::string out;
  const auto line = [&out](std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) out += part;
    out += '\n';
  };
  const std::string proxy = "http://" + listener.text();
  const std::string pools = "http://" + admin.text();
  line({"carpool's demo: an origin, a listener, and a little traffic between them, all on this machine"});
  line({});
  line({"  listener  ", proxy});
  line({"  admin     ", pools, "  a live page: open it in a browser"});
  line({"  origin    http://", DemoOrigin::kPlainName, "       HTTP/1.1, at ", origin.plain().text()});
  line({"  origin    https://", DemoOrigin::kTlsName, "  HTTP/1.1 over TLS, at ", origin.secure().text()});
  line({"  origin    https://", DemoOrigin::kH2Name, "   HTTP/2 over TLS, at ", origin.h2().text()});
  line({"            their certificates, generated at start, are in ", origin.ca_file()});
  line({});
  line({"Try in another terminal (paths: / /bytes/N /delay/MS /echo /close):"});
  line({});
  line({"  curl -x ", proxy, " http://", DemoOrigin::kPlainName, "/"});
  line({"  curl --http2-prior-knowledge -H 'Host: ", DemoOrigin::kH2Name, "' ", proxy, "/"});
  line({"  curl ", pools, "/pools"});
  line({});
  line({"Break something: type a word and Enter, and watch this terminal and the page."});
  line({});
  line({"  kill       the origin stops: its connections end, its ports refuse        start   restarts it"});
  line({"  pause      no connection is lent: requests wait, and fail after 3 s       resume  ends the pause"});
  line({"  drain      the same, and the connections are closed                       resume"});
  line({"  reconnect  every connection is replaced, and no request fails"});
  line({});
  line(
      {"Each second: the current rates, and the savings since the start: a request that reuses a connection opens "
       "none,"});
  line({"and over TLS needs no handshake."});
  line({});
  return out;
}

}  // namespace carpool::proxy
