// H2Fields: a header block to encode, in order. Refers to the texts of the head that it is made from, or owns copies.
// Each loop reuses one, so that it allocates nothing in steady state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "proxy/http/forward.h"
#include "proxy/http/message.h"

namespace carpool::proxy::http {

class H2Fields {
 public:
  struct Field {
    std::string_view name, value;
    bool sensitive = false;  // never indexed by HPACK (RFC 7541 §7.1.3)
  };
  H2Fields() = default;
  // A copy could refer to texts that do not outlive it: see own().
  H2Fields(const H2Fields&) = delete;
  H2Fields& operator=(const H2Fields&) = delete;
  H2Fields(H2Fields&&) noexcept = default;
  H2Fields& operator=(H2Fields&&) noexcept = default;

  void clear();
  void shrink();  // frees memory beyond a modest size
  // Adds a copy. Names may have any case; the encoder writes them in lower case. Pseudo-header fields must come first.
  void add(std::string_view name, std::string_view value, bool sensitive = false);
  // Like add(), without a copy: the texts must stay until clear() or own().
  void refer(std::string_view name, std::string_view value, bool sensitive = false) {
    CARPOOL_ASSERT(name.data() != nullptr);  // a null name is one in text_
    bytes_ += name.size() + value.size();
    push({name.data(), value.data(), size_of(name), size_of(value), 0, sensitive});
  }
  // Refers to the name, which must stay, and copies the pieces of the value.
  void add_value(std::string_view name, std::string_view first, std::string_view rest = {}) {
    const std::uint32_t at = size_of(text_);
    text_.append(first).append(rest);
    bytes_ += name.size() + text_.size() - at;
    push({name.data(), nullptr, size_of(name), size_of(text_) - at, at, false});
  }
  void own();                             // copies the texts that it refers to
  void copy_from(const H2Fields& other);  // owns its texts, whatever `other` does
  std::size_t size() const { return spans_.size(); }
  std::size_t bytes() const { return bytes_ + 64 * spans_.size(); }      // of a copy of them
  std::size_t list_size() const { return bytes_ + 32 * spans_.size(); }  // as SETTINGS_MAX_HEADER_LIST_SIZE counts
  Field operator[](std::size_t i) const {
    const Span& span = spans_[i];
    const char* const copied = text_.data() + span.at;
    const char* const name = span.name != nullptr ? span.name : copied;
    const char* const value = span.value != nullptr  ? span.value
                              : span.name != nullptr ? copied
                                                     : copied + span.name_size;
    return {{name, span.name_size}, {value, span.value_size}, span.sensitive};
  }

 private:
  struct Span {
    const char* name;   // nullptr: it is in text_
    const char* value;  // the same; it follows the name if both are there
    std::uint32_t name_size, value_size;
    std::uint32_t at;  // of what is in text_
    bool sensitive;
  };
  void push(const Span& span) { spans_.push_back(span); }  // inlined, as that of a temporary is not
  static std::uint32_t size_of(std::string_view text) { return static_cast<std::uint32_t>(text.size()); }
  std::string text_;
  std::vector<Span> spans_;
  std::size_t bytes_ = 0;  // of all names and values
};

// The rules of forward.h for an HTTP/2 peer (RFC 9113 §8.2.2, §8.3); rules about the framing and persistence of
// HTTP/1.1 do not apply. Each function clears `out` first. `out` then refers to the texts of its arguments.
struct H2PseudoFields {
  std::string_view scheme;    // "http", "https"
  std::string_view protocol;  // :protocol of an extended CONNECT (RFC 8441); else empty
};
void h2_request(H2Fields& out, const RequestHead& head, const ForwardRules& rules, const H2PseudoFields& pseudo);
void h2_response(H2Fields& out, const ResponseHead& head, const ReplyRules& rules);
void h2_informational(H2Fields& out, const ResponseHead& head, std::string_view via_pseudonym);

}  // namespace carpool::proxy::http
