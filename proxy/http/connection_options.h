// ConnectionOptions: the parsed Connection field (RFC 9110 §7.6.1): the options that a proxy interprets, and the names
// of other hop-by-hop fields. The value is parsed once into storage of bounded size.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "proxy/http/message.h"

namespace carpool::proxy::http {

class ConnectionOptions {
 public:
  // `fields` must outlive this object and must not change meanwhile.
  explicit ConnectionOptions(const Fields& fields) {
    if (fields.may_have(FieldName::connection)) parse(fields);
  }

  // Returns the options of a head, parsed only if they may name a field.
  template <class Head>
  static ConnectionOptions naming_fields_of(const Head& head) {
    return head.lists_fields ? ConnectionOptions(head.fields) : ConnectionOptions();
  }

  bool close = false;
  bool keep_alive = false;
  bool upgrade = false;
  bool te = false;
  // Returns true if there are more options, or more bytes of commas and white space, than any sender needs. Such a head
  // is rejected, so that no field name is searched for among thousands of options.
  bool too_many() const { return too_many_; }
  // Returns true if Connection lists `name`, which is not one of the fields that never pass (Keep-Alive, TE, Upgrade).
  bool lists(std::string_view name) const { return count_ != 0 && find(name); }
  // Returns true if they name a field of this hop, TE included.
  bool name_fields() const { return count_ != 0 || te; }

 private:
  ConnectionOptions() {}  // no option; others_ stays uninitialised
  static constexpr std::size_t kMax = 64;
  static constexpr std::size_t kMaxBytes = 4096;
  struct Option {
    const char* at;
    std::size_t size;
  };
  void parse(const Fields& fields);
  void note(std::string_view option);
  bool find(std::string_view name) const;
  std::array<Option, kMax> others_;  // only the first `count_` are initialised
  std::size_t count_ = 0;
  bool too_many_ = false;
};

}  // namespace carpool::proxy::http
