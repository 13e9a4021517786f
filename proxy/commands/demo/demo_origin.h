// DemoOrigin: a small origin server on its own thread, with listeners for plain HTTP, TLS, and HTTP/2 over TLS, so that
// the demo needs no other server. Closes idle connections early, like real origins.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "exec/deferred_deleter.h"
#include "exec/uv/loop.h"
#include "proxy/commands/demo/h1_session.h"
#include "proxy/commands/demo/h2_session.h"
#include "proxy/commands/demo/temporary_file.h"
#include "proxy/net/acceptor.h"
#include "proxy/net/tls/server_context.h"

namespace carpool::proxy {

class DemoOrigin final : private DemoH1Session::Owner, private DemoH2Session::Owner, private net::Acceptor::Owner {
 public:
  struct Settings {
    Duration idle_timeout = std::chrono::seconds(5);
    std::size_t max_connections = 512;
  };
  // Listens on three free ports of 127.0.0.1 and starts serving. Generates a key and a certificate, which takes some
  // milliseconds.
  static Result<std::unique_ptr<DemoOrigin>> start(const Settings& settings);
  static Result<std::unique_ptr<DemoOrigin>> start() { return start(Settings{}); }
  // Must be called by start() only.
  DemoOrigin(const Settings& settings, std::unique_ptr<exec::UvLoop> loop, std::unique_ptr<tls::ServerContext> tls,
             std::unique_ptr<tls::ServerContext> h2, TemporaryFile certificates);
  ~DemoOrigin();  // stops at once, even if requests are in progress
  DemoOrigin(const DemoOrigin&) = delete;
  DemoOrigin& operator=(const DemoOrigin&) = delete;

  // Simulates the death of its process: its ports refuse, and its connections are closed. Any thread; takes effect
  // asynchronously.
  void kill();
  void revive();  // reopens the same ports

  // Names in its certificate, besides the address.
  static constexpr const char* kPlainName = "demo";
  static constexpr const char* kTlsName = "demo-tls";
  static constexpr const char* kH2Name = "demo-h2";

  // Addresses do not change, even after kill().
  const net::Address& plain() const { return plain_.address(); }
  const net::Address& secure() const { return secure_.address(); }
  const net::Address& h2() const { return h2_.address(); }
  const std::string& ca_file() const { return certificates_.path(); }  // valid for the lifetime of this object

 private:
  Status open(net::Acceptor& acceptor);
  void on_client(net::Acceptor& acceptor, Fd client, const net::Address& peer) override LOOP_ONLY;
  Status add_client(const net::Acceptor& acceptor, Fd client) LOOP_ONLY;
  Status add(std::unique_ptr<DemoH1Session> connection) LOOP_ONLY;
  void stop_serving() LOOP_ONLY;
  void serve_again() LOOP_ONLY;
  void on_connection_end(DemoH1Session& connection) override LOOP_ONLY;
  void on_session_end(DemoH2Session& session) override LOOP_ONLY;

  const Settings settings_;
  std::unique_ptr<exec::UvLoop> loop_;  // declared before all members that use it
  std::unique_ptr<tls::ServerContext> tls_, h2_tls_;
  TemporaryFile certificates_;
  net::Acceptor plain_, secure_, h2_;
  List<DemoH1Session, DemoH1SessionTag> connections_ LOOP_LOCAL;  // owned
  std::size_t connection_count_ LOOP_LOCAL = 0;
  exec::DeferredDeleter<DemoH1Session, DemoH1SessionTag> ended_connections_;
  std::list<DemoH2Session> sessions_ LOOP_LOCAL;
  std::uint64_t accepted_ LOOP_LOCAL = 0;
  bool killed_ LOOP_LOCAL = false;
  std::thread thread_;
};

}  // namespace carpool::proxy
