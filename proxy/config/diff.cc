#include "proxy/config/diff.h"

#include <algorithm>
#include <map>

#include "proxy/config/schema.h"

namespace carpool::proxy::config {
namespace {

std::string key_path(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : std::string(path).append(".").append(key);
}

void compare(const Section& section, const std::string& prefix, const void* before, const void* after,
             std::vector<Change>& changes) {
  for (const Setting& setting : section.settings) {
    const Value a = setting.get(before), b = setting.get(after);
    if (a == b) continue;
    const std::string key = prefix + key_path(section.path, setting.key);
    changes.push_back({key, toml(masked(setting, a)), toml(masked(setting, b)), setting.live});
  }
}

// The values are secrets, so a change shows only that there is one.
void compare_fields(const Section& section, const std::string& prefix, const void* before, const void* after,
                    std::vector<Change>& changes) {
  using Fields = std::vector<SetField>;
  const auto text = [](const Fields& fields, const std::string& name) {
    const auto at = std::find_if(fields.begin(), fields.end(), [&](const SetField& f) { return f.name == name; });
    return at == fields.end() ? std::string() : toml(at->value);
  };
  const auto& a = *static_cast<const Fields*>(before);
  const auto& b = *static_cast<const Fields*>(after);
  for (const SetField& field : a) {
    if (std::find(b.begin(), b.end(), field) != b.end()) continue;
    changes.push_back({prefix + key_path(section.path, field.name), text(a, field.name), text(b, field.name), true});
  }
  for (const SetField& field : b) {
    if (text(a, field.name).empty()) changes.push_back({prefix + key_path(section.path, field.name), {}, "set", true});
  }
}

void compare_listeners(const Config& before, const Config& after, std::vector<Change>& changes) {
  const Section& section = *find_section("listen");
  const auto at = [](const Config& config, const std::string& name) {
    return std::find_if(config.listen.begin(), config.listen.end(), [&](const auto& l) { return l.name() == name; });
  };
  for (const Listen& listen : before.listen) {
    const auto now = at(after, listen.name());
    if (now == after.listen.end()) {
      changes.push_back({"listen " + listen.name(), "open", {}, true});
    } else {
      compare(section, "listen " + listen.name() + ": ", &listen, &*now, changes);
    }
  }
  for (const Listen& listen : after.listen) {
    if (at(before, listen.name()) == before.listen.end()) {
      changes.push_back({"listen " + listen.name(), {}, "open", true});
    }
  }
}

// `common`: the changes in the sections that every origin inherits; they are not repeated for each origin.
void compare_origin(OriginSettings before, OriginSettings after, const std::vector<Change>& common,
                    std::vector<Change>& changes) {
  const std::string prefix = "origin " + after.origin.label() + ": ";
  std::vector<Change> own;
  for (const Section& section : sections()) {
    if (section.fields) {
      compare_fields(section, prefix, section.in_origin(before), section.in_origin(after), own);
    } else if (section.in_origin != nullptr) {
      compare(section, prefix, section.in_origin(before), section.in_origin(after), own);
    }
  }
  compare(*find_section("origin"), prefix, &before, &after, own);
  const auto inherited = [&](const Change& change) {
    return std::any_of(common.begin(), common.end(), [&](const Change& c) {
      return prefix + c.key == change.key && c.from == change.from && c.to == change.to;
    });
  };
  std::copy_if(own.begin(), own.end(), std::back_inserter(changes), [&](const Change& c) { return !inherited(c); });
}

void compare_origins(const Config& before, const Config& after, std::vector<Change>& changes) {
  const std::vector<Change> common = changes;
  std::map<std::string, const OriginSettings*> gone;
  for (const OriginSettings& settings : before.origins) gone.emplace(settings.origin.label(), &settings);
  for (const OriginSettings& settings : after.origins) {
    const auto known = gone.find(settings.origin.label());
    if (known == gone.end()) {
      changes.push_back({"origin " + settings.origin.label(), {}, "configured", true});
    } else {
      compare_origin(*known->second, settings, common, changes);
      gone.erase(known);
    }
  }
  for (const auto& [label, settings] : gone) changes.push_back({"origin " + label, "configured", {}, true});
}

// The token and the TLS of the admin endpoint were checked for its new address, so they wait for the restart with it:
// the old address would be left without them.
bool admin_needs_restart(const Config& before, const Config& after) {
  return before.admin.address != after.admin.address || before.admin.enabled != after.admin.enabled;
}

}  // namespace

std::vector<Change> diff(const Config& before, const Config& after) {
  Config a = before, b = after;  // copies: the schema's accessors take non-const pointers
  std::vector<Change> changes;
  for (const Section& section : sections()) {
    if (section.in_config != nullptr) compare(section, "", section.in_config(a), section.in_config(b), changes);
  }
  if (admin_needs_restart(before, after)) {
    for (Change& change : changes) change.live = change.live && !change.key.starts_with("admin.");
  }
  compare_listeners(a, b, changes);
  compare_origins(a, b, changes);
  return changes;
}

void keep_what_needs_restart(const Config& before, Config& after) {
  Config old = before;
  if (admin_needs_restart(before, after)) after.admin = before.admin;
  for (const Section& section : sections()) {
    if (section.in_config == nullptr) continue;
    for (const Setting& setting : section.settings) {
      if (!setting.live) setting.set(section.in_config(after), setting.get(section.in_config(old)));
    }
  }
}

}  // namespace carpool::proxy::config
