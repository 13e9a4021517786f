#include "proxy/config/read_intercept.h"

#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>
#include <algorithm>
#include <optional>
#include <sstream>

#include "proxy/config/read_table.h"

namespace carpool::proxy::config {
namespace {

using Which = InterceptRequest::Which;

class Setter {
 public:
  Setter(toml::table& table, const InterceptRequest& request) : table_(table), request_(request) {}

  // Returns true if the table has changed.
  bool set() {
    if (toml::array* const origins = table_["origin"].as_array()) {
      for (toml::node& node : *origins) set_in(node);
    }
    if (request_.which == Which::listed) append_missing();
    return changed_;
  }
  std::vector<std::string> take_hosts() { return std::move(hosts_); }

 private:
  void set_in(toml::node& node) {
    toml::table* const origin = node.as_table();
    const std::optional<std::string> uri = origin == nullptr ? std::nullopt : (*origin)["uri"].value<std::string>();
    if (!uri) return;  // an error that the check reports
    const Result<pool::Origin> named = pool::parse_origin(*uri);
    if (!named) return;
    const bool before = (*origin)["intercept"].value<bool>().value_or(false);
    const bool now = wanted(*named, before);
    if (now) known_.push_back(*named);
    if (now) note(named->host);
    if (now == before) return;
    origin->insert_or_assign("intercept", now);
    changed_ = true;
  }

  bool wanted(const pool::Origin& origin, bool before) const {
    switch (request_.which) {
      case Which::as_configured:
        return before;
      case Which::none:
        return false;
      case Which::every_https:
        return before || (origin.scheme == pool::Scheme::https && !origin.is_ip_literal());
      case Which::listed:
        return before || std::find(request_.origins.begin(), request_.origins.end(), origin) != request_.origins.end();
    }
    return before;
  }

  void append_missing() {
    for (const pool::Origin& origin : request_.origins) {
      if (std::find(known_.begin(), known_.end(), origin) != known_.end()) continue;
      if (!table_.contains("origin")) table_.insert("origin", toml::array{});
      toml::array* const origins = table_["origin"].as_array();
      if (origins == nullptr) return;  // an error that the check reports
      origins->push_back(toml::table{{"uri", origin.label()}, {"intercept", true}});
      known_.push_back(origin);
      note(origin.host);
      changed_ = true;
    }
  }

  void note(const std::string& host) {
    if (std::find(hosts_.begin(), hosts_.end(), host) == hosts_.end()) hosts_.push_back(host);
  }

  toml::table& table_;
  const InterceptRequest& request_;
  std::vector<pool::Origin> known_;  // those that are intercepted
  std::vector<std::string> hosts_;
  bool changed_ = false;
};

// Returns whether it changed the table.
bool insert_folder(toml::table& table, const std::string& ca_dir) {
  if (!table.contains("intercept")) table.insert("intercept", toml::table{});
  toml::table* const section = table["intercept"].as_table();
  return section != nullptr && section->insert("ca_dir", ca_dir).second;
}

bool remove_folder(toml::table& table, bool is_callers) {
  if (is_callers) table["intercept"].as_table()->erase("ca_dir");
  return is_callers;
}

}  // namespace

Result<InterceptedText> set_intercept(std::string_view base, const InterceptRequest& request,
                                      const std::string& ca_dir) {
  Result<toml::table> table = read_table(base);
  if (!table) return table.take_fault();
  Setter setter(*table, request);
  bool changed = setter.set();
  InterceptedText made{std::string(base), setter.take_hosts()};
  const std::optional<std::string> before = (*table)["intercept"]["ca_dir"].value<std::string>();
  if (made.hosts.empty()) {
    changed |= remove_folder(*table, before == ca_dir);
  } else if (before && *before != ca_dir) {
    return Fault{FaultKind::malformed_request, Side::client,
                 "intercept.ca_dir is " + *before + ", expected " + ca_dir + " or none"};
  } else {
    changed |= insert_folder(*table, ca_dir);
  }
  if (!changed) return made;
  std::ostringstream text;
  text << *table << '\n';
  made.text = text.str();
  return made;
}

}  // namespace carpool::proxy::config
