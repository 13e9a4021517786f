// CheckRules: what the checks across settings share: the configuration, the places of its keys, and the reports. Rules
// skip a key that is already reported, because the configuration holds its default instead of the written value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proxy/config/read.h"

namespace carpool::proxy::config {

class CheckRules {
 protected:
  CheckRules(Reading& reading, const Places& places, const std::string& file)
      : reading_(reading), config_(reading.config), places_(places), file_(file) {}

  ConfigError at(const std::string& key, std::string text) const {
    const Place place = places_.of(key);
    return {file_, place.line, place.column, without_numbers(key), std::move(text)};
  }
  void error(const std::string& key, std::string text) { reading_.errors.push_back(at(key, std::move(text))); }
  void warning(const std::string& key, std::string text) { reading_.warnings.push_back(at(key, std::move(text))); }

  // Returns "line 12": the place of the other key in a conflict of two.
  std::string line_of(const std::string& key) const { return "line " + std::to_string(places_.of(key).line); }

  bool any_invalid(const std::vector<std::string>& keys) const {
    return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) { return places_.invalid(key); });
  }

  // Reports `key` if its value is more than that of `other`.
  void at_most(const std::string& key, std::uint32_t value, const std::string& other, std::uint32_t most);

  // `one` requires `other`, both keys of the same table.
  void needs(const std::string& prefix, const std::string& one, const char* key, const std::string& other,
             const char* missing);

  // A certificate and its key are set together. `prefix` precedes the keys of `table`.
  template <class Table>
  void identity_is_whole(const Table& table, const std::string& prefix) {
    needs(prefix, table.cert_file, "cert_file", table.key_file, "key_file");
    needs(prefix, table.key_file, "key_file", table.cert_file, "cert_file");
  }

  // check_certificates() (proxy/downstream) checks whether the files can be used.
  template <class Table>
  NamedCertificates& note_certificates(const Table& table, const std::string& authorities, const std::string& prefix,
                                       const char* key) {
    return reading_.certificates.emplace_back(NamedCertificates{table.cert_file, table.key_file, authorities, false,
                                                                true, at(prefix + "cert_file", {}),
                                                                at(prefix + "key_file", {}), at(prefix + key, {})});
  }

  // Reports the second item.
  void listed_once(const std::vector<std::string>& list, const std::string& key, const char* what);

  Reading& reading_;
  const Config& config_;
  const Places& places_;
  const std::string& file_;
};

}  // namespace carpool::proxy::config
