#include "proxy/http/client_field.h"

#include <algorithm>

namespace carpool::proxy::http {
namespace {

constexpr std::string_view kUnknown = "unknown";
constexpr std::size_t kMaxAddress = 45;  // an IPv6 address with an embedded IPv4 address

// Returns the address without port, brackets and zone.
std::string_view address_in(std::string_view peer) {
  std::string_view host = peer.substr(0, peer.rfind(':'));
  if (host.starts_with('[')) {
    const std::size_t end = host.find_first_of("]%");
    host = end == std::string_view::npos ? std::string_view() : host.substr(1, end - 1);
  }
  const bool plain = host.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
  return plain && !host.empty() && host.size() <= kMaxAddress ? host : kUnknown;
}

class Writer {
 public:
  explicit Writer(ClientFieldText& text) : text_(text) {}
  Writer& add(std::string_view part) {
    size_ += part.copy(text_.data() + size_, text_.size() - size_);
    return *this;
  }
  std::string_view view() const { return {text_.data(), size_}; }

 private:
  ClientFieldText& text_;
  std::size_t size_ = 0;
};

}  // namespace

std::string_view x_forwarded_for(std::string_view peer, ClientFieldText& text) {
  return Writer(text).add(address_in(peer)).view();
}

std::string_view forwarded(std::string_view peer, bool secured, ClientFieldText& text) {
  const std::string_view address = address_in(peer);
  const bool v6 = address.find(':') != std::string_view::npos;  // RFC 7239 §6: in brackets, and quoted
  Writer out(text);
  out.add(v6 ? "for=\"[" : "for=").add(address).add(v6 ? "]\"" : "");
  return out.add(secured ? ";proto=https" : ";proto=http").view();
}

}  // namespace carpool::proxy::http
