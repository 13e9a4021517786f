// LoadClient: one client of the demo's traffic: a persistent connection with one request at a time. It never blocks;
// the traffic's thread polls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "proxy/http/h1/codec.h"
#include "proxy/net/address.h"

struct pollfd;

namespace carpool::proxy {

// LoadRequest: a request to a proxy, with the whole URI in the request line.
struct LoadRequest {
  std::string_view host;  // "demo"
  std::string_view path = "/";
  bool secure = false;   // https, for which the proxy uses TLS
  std::size_t body = 0;  // bytes to POST; 0 for GET
};

class LoadClient final : private http::BodySink {
 public:
  enum class Outcome : std::uint8_t { none, answered, failed };

  explicit LoadClient(const net::Address& proxy) : proxy_(proxy), reader_(http::Limits{}) {}
  LoadClient(const LoadClient&) = delete;
  LoadClient& operator=(const LoadClient&) = delete;
  ~LoadClient() = default;

  bool free() const { return !busy_; }
  // Requires free(). Returns `failed` if the request could not be started.
  Outcome send(const LoadRequest& load_request);
  pollfd interest() const;
  Outcome on_events(short events);

 private:
  bool connect();
  Outcome write_some();
  Outcome read_some();
  Outcome feed(std::string_view bytes);
  Outcome end(Outcome outcome, bool keep);
  void on_body(std::string_view) override {}
  void on_trailer(std::string_view, std::string_view, bool) override {}

  const net::Address proxy_;
  Fd fd_;
  http::ResponseReader reader_;
  http::ResponseHead head_;
  std::string out_;
  std::size_t sent_ = 0;
  bool busy_ = false;
};

}  // namespace carpool::proxy
