// H2Fields: a header block to encode, in order. Each loop reuses one, so that it allocates nothing in steady state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/forward.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

class H2Fields {
 public:
  struct Field {
    std::string_view name, value;
    bool sensitive = false;  // never indexed by HPACK (RFC 7541 §7.1.3)
  };
  void clear();
  void shrink();  // frees memory beyond a modest size
  // Names may have any case; the encoder writes them in lower case. Pseudo-header fields must come first.
  void add(std::string_view name, std::string_view value, bool sensitive = false);
  std::size_t size() const { return spans_.size(); }
  std::size_t bytes() const { return text_.size() + 64 * spans_.size(); }  // of a copy of them
  Field operator[](std::size_t i) const;

 private:
  struct Span {
    std::uint32_t name, value, end;
    bool sensitive;
  };
  std::string text_;
  std::vector<Span> spans_;
};

// The rules of forward.h for an HTTP/2 peer (RFC 9113 §8.2.2, §8.3); rules about the framing and persistence of
// HTTP/1.1 do not apply. Each function clears `out` first.
struct H2PseudoFields {
  std::string_view scheme;    // "http", "https"
  std::string_view protocol;  // :protocol of an extended CONNECT (RFC 8441); else empty
};
void h2_request(H2Fields& out, const RequestHead& head, const ForwardRules& rules, const H2PseudoFields& pseudo);
void h2_response(H2Fields& out, const ResponseHead& head, const ReplyRules& rules);
void h2_informational(H2Fields& out, const ResponseHead& head, std::string_view via_pseudonym);

}  // namespace carpool::proxy::http
