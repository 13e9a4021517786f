#include "proxy/config/print.h"

#include "proxy/config/check.h"
#include "proxy/config/schema.h"
#include "proxy/config/text.h"

namespace carpool::proxy::config {
namespace {

std::string header(const Section& section, std::string_view path) {
  if (path.empty()) return {};
  const std::string name(path);
  return section.repeated ? "[[" + name + "]]\n" : "[" + name + "]\n";
}

void padded(std::string& out, const std::string& text, std::size_t width) {
  out += text;
  if (text.size() < width) out.append(width - text.size(), ' ');
}

// ---- a configuration ----

void print_fields(std::string& out, const Section& section, const void* values) {
  const auto& fields = *static_cast<const std::vector<SetField>*>(values);
  if (fields.empty()) return;
  out.append(1, '\n').append(header(section, full_path(section)));
  for (const SetField& field : fields)
    out.append(in_quotes(field.name)).append(" = ").append(toml(field.value)) += '\n';
}

void print_values(std::string& out, const Section& section, const void* values, std::string_view path,
                  const OriginSettings* origin = nullptr) {
  if (section.fields) return print_fields(out, section, values);
  if (!out.empty()) out += '\n';
  out += header(section, path);
  for (const Setting& setting : section.settings) {
    const std::string text = toml(masked(setting, setting.get(values)));
    if (origin != nullptr && only_inherited(*origin, section, setting)) continue;
    if (!text.empty()) out.append(setting.key).append(" = ").append(text).append(1, '\n');
  }
}

void print_origin(std::string& out, const Section& origin_section, OriginSettings& origin) {
  print_values(out, origin_section, &origin, origin_section.path, &origin);
  for (const Section& section : sections()) {
    if (section.in_origin == nullptr) continue;
    print_values(out, section, section.in_origin(origin), "origin." + std::string(section.path), &origin);
  }
}

void print_section(std::string& out, const Section& section, Config& config) {
  if (section.in_config != nullptr) return print_values(out, section, section.in_config(config), section.path);
  if (section.path == "listen") {
    for (const Listen& listen : config.listen) print_values(out, section, &listen, section.path);
  } else if (section.path == "origin") {
    for (OriginSettings& origin : config.origins) print_origin(out, section, origin);
  }
}

// ---- the default file ----

constexpr std::size_t kCommentColumn = 40;
constexpr std::string_view kFieldExample = R"(X-Api-Key = { file = "/run/secrets/api-key" })";

constexpr std::string_view kIntroduction =
    "# carpool's configuration: the usual settings with their defaults, which apply if a setting is omitted.\n"
    "# Durations: \"250ms\" \"30s\" \"10m\" \"1h\". Sizes: \"16KiB\". In strings: ${ENV}, ${ENV:-default}, "
    "${ENV:?message};\n# also for a number, true or false: \"${SIZE:-64}\". A relative path is relative to this file's "
    "directory.\n"
    "# docs/configuration.md and `carpool man carpool.toml` have all settings, with types and bounds; `carpool "
    "--check`\n"
    "# reports every error.\n";

// Returns "key = value"; if the default is empty, the example as a comment.
std::string assignment(const Section& section, const Setting& setting, bool commented) {
  const Value value = default_of(section, setting);
  const bool silent = empty(value);
  const std::string text(silent ? std::string(setting.example) : toml(value));
  const bool as_comment = silent || commented;
  return std::string(as_comment ? "# " : "").append(setting.key).append(" = ").append(text);
}

void print_default_section(std::string& out, const Section& section) {
  // An example: by default no origin has overrides.
  const bool commented = section.path == "origin" || of_origins_only(section);
  out += '\n';
  if (!section.path.empty()) {
    std::string head = header(section, full_path(section));
    head.pop_back();
    padded(out, (commented ? "# " : "") + head, kCommentColumn - 1);
    out.append(" # ").append(section.doc).append(1, '\n');
  }
  for (const Setting& setting : section.settings) {
    if (!setting.usual) continue;
    padded(out, assignment(section, setting, commented), kCommentColumn - 1);
    out.append(" # ").append(setting.doc);
    if (!setting.words.empty()) out.append(": ").append(bounds_text(setting, default_of(section, setting)));
    out += '\n';
  }
  if (section.fields) out.append("# ").append(kFieldExample).append(1, '\n');
}

}  // namespace

std::string print_config(const Config& config) {
  Config copy = config;  // the schema's accessors take non-const pointers
  std::string out;
  for (const Section& section : sections()) print_section(out, section, copy);
  return out;
}

std::string print_default_config() {
  std::string out(kIntroduction);
  for (const Section& section : sections()) print_default_section(out, section);
  return out;
}

}  // namespace carpool::proxy::config
