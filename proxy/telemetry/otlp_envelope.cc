#include "proxy/telemetry/otlp_envelope.h"

#include <algorithm>

#include "base/protobuf.h"
#include "proxy/config/options.h"
#include "proxy/telemetry/otlp_attributes.h"

namespace carpool::proxy::otlp {

namespace {
constexpr std::uint32_t kResourceSpans = 1;                             // field of the request
constexpr std::uint32_t kResource = 1, kScopeSpans = 2;                 // fields of ResourceSpans
constexpr std::uint32_t kResourceAttributes = 1;                        // field of Resource
constexpr std::uint32_t kScope = 1, kScopeName = 1, kScopeVersion = 2;  // fields of ScopeSpans and InstrumentationScope
constexpr std::uint32_t kPartialSuccess = 1;                            // field of the response
constexpr std::uint32_t kRejected = 1, kErrorMessage = 2;               // fields of its partial success
constexpr std::size_t kMaxMessage = 256;

std::string resource_of(const config::Otlp& settings, std::string_view instance) {
  std::string resource;
  ProtobufWriter out(resource);
  Attributes add(out, kResourceAttributes);
  add.text("service.name", settings.service_name);
  add.text("service.version", config::version());
  add.text("service.instance.id", instance);
  for (const std::string& pair : settings.resource) {
    const std::size_t equals = pair.find('=');
    add.text(std::string_view(pair).substr(0, equals), std::string_view(pair).substr(equals + 1));
  }
  return resource;
}

std::string scope() {
  std::string scope;
  ProtobufWriter out(scope);
  out.bytes(kScopeName, "carpool");
  out.bytes(kScopeVersion, config::version());
  return scope;
}

std::string printable(std::string_view text) {
  std::string shown(text.substr(0, kMaxMessage));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}
}  // namespace

std::string envelope(const config::Otlp& settings, std::string_view instance, std::size_t size) {
  const auto field_of = [](std::uint32_t field, std::string_view bytes) {
    std::string made;
    ProtobufWriter(made).bytes(field, bytes);
    return made;
  };
  const std::string resource = field_of(kResource, resource_of(settings, instance));
  const std::string own_scope = field_of(kScope, scope());
  const std::size_t scope_spans = own_scope.size() + size;
  std::string out;
  ProtobufWriter writer(out);
  writer.head(kResourceSpans, resource.size() + 1 + ProtobufWriter::size_of(scope_spans) + scope_spans);
  out += resource;
  writer.head(kScopeSpans, scope_spans);
  out += own_scope;
  return out;
}

Result<ExportResponse> read_response(std::string_view body) {
  const Fault malformed{FaultKind::malformed_response, Side::self, "the response is not an OTLP message"};
  ExportResponse response;
  ProtobufReader message(body);
  while (const auto field = message.next()) {
    if (field->number != kPartialSuccess) continue;
    ProtobufReader partial(field->bytes);
    while (const auto part = partial.next()) {
      if (part->number == kRejected) response.rejected = part->value;
      if (part->number == kErrorMessage) response.message = printable(part->bytes);
    }
    if (!partial.valid()) return malformed;
  }
  if (!message.valid()) return malformed;
  return response;
}

}  // namespace carpool::proxy::otlp
