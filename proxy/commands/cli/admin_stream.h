// AdminStream: a blocking stream of bytes to an instance's admin endpoint, in plain text or over TLS, with a timeout on
// every wait. Its owner parses the response.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "proxy/net/tls/client_context.h"
#include "proxy/net/transport.h"

namespace carpool::proxy::cli {

// Trust: how the certificate of an instance with TLS is verified, by one of the first three members.
struct Trust {
  std::string ca_file;      // authorities in PEM; empty for those of the system
  std::string certificate;  // a file whose first certificate is the instance's; its names are ignored
  bool any = false;         // no verification, for a probe that sends nothing secret
  // The client's own certificate, if the instance requires one; empty if none. Without a key_file, cert_file also
  // contains the key.
  std::string cert_file, key_file;
};

class AdminStream {
 public:
  // `host_port`: an address as in [admin] address, or a name and a port. The Fault gives the reason.
  static Result<AdminStream> open(const std::string& host_port, const std::optional<Trust>& trust, int timeout_seconds);

  void set_timeout(int seconds) { timeout_seconds_ = seconds; }  // of every further wait
  Status send(std::string_view text);
  // Returns the number of bytes; 0 if the instance has closed the connection.
  Result<std::size_t> receive(std::span<char> into);

 private:
  AdminStream(std::unique_ptr<net::Transport> transport, int timeout_seconds)
      : transport_(std::move(transport)), timeout_seconds_(timeout_seconds) {}
  Status begin_tls(Fd socket, const std::string& host, std::uint16_t port, const Trust& trust);
  // `what`: the subject of the fault that reports a timeout.
  Status wait(bool to_write, std::string_view what);

  std::unique_ptr<tls::ClientContext> context_;
  std::unique_ptr<net::Transport> transport_;
  int timeout_seconds_;
};

}  // namespace carpool::proxy::cli
