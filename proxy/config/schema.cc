// Code shared by all rows: order, lookup, and the text of values, types and bounds.
#include "proxy/config/schema.h"

#include "proxy/config/setting_row.h"
#include "proxy/config/text.h"
#include "proxy/http/redact.h"

namespace carpool::proxy::config {
namespace {

template <class... Visitor>
struct Visit : Visitor... {
  using Visitor::operator()...;
};
template <class... Visitor>
Visit(Visitor...) -> Visit<Visitor...>;

// Reading "hidden" back is an error, so that no printed configuration is used with a wrong secret.
std::string secret_text(const Secret& secret) {
  if (!secret.given()) return {};
  if (secret.file.empty()) return "{ hidden = true }";
  const std::string prefix = secret.prefix.empty() ? "" : ", prefix = " + in_quotes(secret.prefix);
  return "{ file = " + in_quotes(secret.file) + prefix + " }";
}

template <class List, class Show>
std::string list_text(const List& list, Show show) {
  std::string out;
  for (const auto& item : list) out.append(out.empty() ? "" : ", ").append(show(item));
  return '[' + out + ']';
}

}  // namespace

const std::vector<Section>& sections() {
  static const std::vector<Section> all{
      top_section(),      listen_section(),  admin_section(),        metrics_section(),   otlp_section(),
      pool_section(),     warm_up_section(), health_check_section(), addresses_section(), total_section(),
      request_section(),  dns_section(),     upstream_section(),     tls_section(),       egress_section(),
      origin_section(),   headers_section(), oauth2_section(),       intercept_section(), handover_section(),
      overload_section(), threads_section(), log_section()};
  return all;
}

std::string full_path(const Section& section) {
  return std::string(of_origins_only(section) ? "origin." : "").append(section.path);
}

const Section* find_section(std::string_view path) {
  for (const Section& section : sections()) {
    if (section.path == path) return &section;
  }
  return nullptr;
}

const Setting* find_setting(const Section& section, std::string_view key) {
  for (const Setting& setting : section.settings) {
    if (setting.key == key) return &setting;
  }
  return nullptr;
}

std::string toml(const Value& value) {
  return std::visit(
      Visit{
          [](bool flag) -> std::string { return flag ? "true" : "false"; },
          [](std::int64_t number) { return number == kAutomatic ? in_quotes("auto") : std::to_string(number); },
          [](Size bytes) { return in_quotes(size_text(bytes)); },
          [](Duration duration) {
            return in_quotes(duration == kUnlimited ? std::string("unlimited") : duration_text(duration));
          },
          [](const std::string& text) { return in_quotes(text); },
          [](const std::vector<std::string>& texts) { return list_text(texts, in_quotes); },
          [](const Ports& ports) {
            return ports ? list_text(*ports, [](std::uint16_t port) { return std::to_string(port); }) : std::string();
          },
          [](const Secret& secret) { return secret_text(secret); },
      },
      value);
}

Value masked(const Setting& setting, Value value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || setting.form == nullptr || !setting.form->target) return value;
  std::string scratch;
  return std::string(http::redacted(*text, scratch, std::string::npos));
}

bool empty(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return text->empty();
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) return texts->empty();
  if (const auto* ports = std::get_if<Ports>(&value)) return !ports->has_value();
  if (const auto* secret = std::get_if<Secret>(&value)) return !secret->given();
  return false;
}

std::string bounds_text(const Setting& setting, const Value& value) {
  if (!setting.words.empty()) {
    std::string out;
    for (const auto word : setting.words) out.append(out.empty() ? "" : " | ").append(word);
    return out;
  }
  const auto show = [&](std::int64_t bound) -> std::string {
    if (std::holds_alternative<Size>(value)) return size_text(static_cast<Size>(bound));
    if (std::holds_alternative<Duration>(value)) return duration_text(std::chrono::milliseconds(bound));
    return std::to_string(bound);
  };
  const bool unbounded = setting.most >= std::numeric_limits<std::uint32_t>::max();
  if (setting.form != nullptr) return std::string(setting.form->expected);
  if (setting.or_unlimited) return R"(a duration or "unlimited")";
  if (std::holds_alternative<Duration>(value) && unbounded) {
    if (setting.least > 1) return "at least " + show(setting.least);
    return setting.least > 0 ? "more than 0s" : "";
  }
  if (std::holds_alternative<Ports>(value) || !unbounded) return show(setting.least) + " to " + show(setting.most);
  return "";
}

}  // namespace carpool::proxy::config
