// The fixture of the tests of the resolver: a name server, a resolv.conf, and a question that records its result.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "proxy/net/dns/resolver.h"
#include "tests/unit/net_name_server.h"

namespace carpool::proxy::dns {

struct Asked final : Question {
  void on_addresses(Result<std::vector<net::Address>> addresses) override {
    ++results;
    if (addresses) {
      for (const auto& address : *addresses) text += (text.empty() ? "" : " ") + address.host();
    } else {
      fault.emplace(addresses.take_fault());
      text = "fault";
    }
  }
  bool done() const { return results > 0; }
  int results = 0;
  std::string text;
  std::optional<Fault> fault;
};

struct Dns : ::testing::Test {
  Settings settings() const {
    Settings out;
    out.min_ttl = std::chrono::milliseconds(20);
    out.servers = {server.at()};
    out.resolv_conf = conf.path();
    return out;
  }
  std::string resolve(Resolver& resolver, std::string_view host) {
    exec::assume_on_loop();
    Asked asked;
    resolver.ask(host, asked);
    EXPECT_FALSE(asked.done()) << "answered from inside ask()";
    EXPECT_TRUE(loop.until([&] { return asked.done(); }));
    last = asked.fault;
    return asked.text;
  }
  net::TurnedLoop loop;
  net::NameServer server{loop};
  net::TemporaryFile conf{"options timeout:1 attempts:1\nsearch svc.test\n"};
  std::optional<Fault> last;
};

}  // namespace carpool::proxy::dns
