#include "proxy/commands/webhook/review.h"

#include <utility>

#include "base/utf8.h"
#include "proxy/commands/webhook/injection.h"
#include "proxy/commands/webhook/intercept_annotation.h"
#include "proxy/commands/webhook/patch.h"
#include "proxy/config/options.h"
#include "proxy/config/read.h"
#include "proxy/config/read_overlay.h"
#include "proxy/config/text.h"
#include "proxy/net/tls/digest.h"

namespace carpool::proxy::webhook {
namespace {

// A pod is about ten levels deep, and its managed fields add as many. A large pod has some thousand values.
constexpr JsonBounds kBounds{64, 100000};
// The API server's limit for all annotations of an object.
constexpr std::size_t kMaxAnnotation = std::size_t{256} * 1024;
constexpr std::size_t kMaxUid = 128, kMaxName = 63 + 1 + 253, kMaxWhy = 4096;
constexpr const char* kOverlay = "carpool.io/config-overlay";

const Json& at(const Json& owner, const char* key) {
  static const Json kNone;
  if (!owner.is_object()) return kNone;
  const auto found = owner.find(key);
  return found == owner.end() ? kNone : *found;
}

std::string text(const Json& node) {
  return node.is_string() ? node.get<std::string>() : std::string();
}

// Returns the errors of a configuration, one per line; empty if it is valid. Environment variables and files are known
// only in the pod.
std::string errors_of(const std::string& config) {
  const config::Env none = [](std::string_view) { return std::optional<std::string>(); };
  std::string all;
  for (const config::ConfigError& error : config::read_text(config, "", none, config::Machine::another).errors) {
    all.append(all.empty() ? "" : "\n")
        .append(config::visible(error.key))
        .append(": ")
        .append(config::visible(error.text));
  }
  return all;
}

// Returns true if the pod requests carpool: by its label, or without a label by the annotation that needs carpool.
bool asks_for_it(const Json& metadata) {
  const Json& label = at(at(metadata, "labels"), kLabel);
  const std::string intercept = text(at(at(metadata, "annotations"), kIntercept));
  if (label.is_string()) return text(label) == "true";
  if (intercept.size() > kMaxAnnotation) return true;  // the pod is refused
  const Result<config::InterceptRequest> asked = parse_intercept(intercept);
  using Which = config::InterceptRequest::Which;
  // Configure() reports the error.
  return !asked || asked->which == Which::every_https || asked->which == Which::listed;
}

// Returns the parts, with these hosts as arguments of the authority's container.
Parts parts_for(const InterceptParts& intercept, const std::vector<std::string>& hosts) {
  Parts parts = intercept.parts;
  for (Json& container : parts.init_containers) {
    if (container.at("name") != intercept.authority) continue;
    for (const std::string& host : hosts) container.at("args").push_back(host);
  }
  return parts;
}

std::string name_of(const Json& request, const Json& pod) {
  const Json& metadata = at(pod, "metadata");
  std::string name = text(at(metadata, "name"));
  if (name.empty()) name = text(at(metadata, "generateName"));  // the API server has not generated the name yet
  return std::string(clipped(text(at(request, "namespace")) + "/" + name, kMaxName));
}

ReviewResult malformed(std::string why) {
  std::string error = "expected an AdmissionReview of admission.k8s.io/v1";
  if (!why.empty()) error.append("; the body ").append(why);
  return {Outcome::malformed, json_text(Json{{"error", error}}), {}, std::move(why), ReviewLimit::none};
}

Json review_response(const Json& request, bool allowed) {
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"response", {{"uid", text(at(request, "uid"))}, {"allowed", allowed}}}};
}

}  // namespace

struct Reviewer::Impl {
  Injection injection;

  ReviewResult review_pod(const Json& request) const;
  // Returns the configuration of a pod with these annotations. The Fault's detail begins with the invalid annotation.
  Result<config::InterceptedText> configure(const Json& annotations) const;
  ReviewResult refuse(const Json& request, std::string why) const;
};

ReviewResult Reviewer::Impl::refuse(const Json& request, std::string why) const {
  Json review = review_response(request, false);
  why = std::string(clipped(why, kMaxWhy));
  review["response"]["status"] = {{"code", 400}, {"message", "carpool: " + why}};
  return {Outcome::refused, json_text(review), {}, std::move(why), ReviewLimit::none};
}

Result<config::InterceptedText> Reviewer::Impl::configure(const Json& annotations) const {
  const auto invalid = [](std::string_view annotation, const std::string& why,
                          FaultKind kind = FaultKind::malformed_request) {
    return Fault{kind, Side::client, std::string(annotation).append(": ").append(why)};
  };
  const std::string over = text(at(annotations, kOverlay)), intercept = text(at(annotations, kIntercept));
  for (const auto& [name, value] : {std::pair(kOverlay, &over), std::pair(kIntercept, &intercept)}) {
    if (value->size() <= kMaxAnnotation) continue;
    const std::string why = "is longer than " + std::to_string(kMaxAnnotation) + " bytes";
    return invalid(name, why, FaultKind::body_too_large);
  }
  std::string both = over.empty() && !intercept.empty() ? kIntercept : kOverlay;
  if (!over.empty() && !intercept.empty()) both.append(", ").append(kIntercept);
  Result<config::InterceptRequest> asked = parse_intercept(intercept);
  if (!asked) return invalid(kIntercept, asked.fault().detail);
  Result<std::string> merged =
      over.empty() ? Result<std::string>(injection.config) : config::overlay(injection.config, over);
  if (!merged) return invalid(kOverlay, merged.fault().detail);
  const std::string ca_dir = injection.intercept ? injection.intercept->ca_dir : std::string();
  Result<config::InterceptedText> made = config::set_intercept(*merged, *asked, ca_dir);
  if (!made) return invalid(both, made.fault().detail);
  if (!made->hosts.empty() && !injection.intercept) return invalid(both, "this webhook's chart cannot intercept");
  for (const std::string& host : made->hosts) {
    if (host.starts_with('-')) return invalid(both, "`" + host + "` is not a host: it begins with -");
  }
  if (made->hosts.empty() && asked->which == config::InterceptRequest::Which::every_https) {
    return invalid(kIntercept, "the configuration names no https origin; expected hosts");
  }
  if (over.empty() && intercept.empty()) return made;
  if (const std::string why = errors_of(made->text); !why.empty()) return invalid(both, why);
  return made;
}

ReviewResult Reviewer::Impl::review_pod(const Json& request) const {
  const Json& pod = at(request, "object");
  const Json& spec = at(pod, "spec");
  const Json& metadata = at(pod, "metadata");
  const bool is_pod = text(at(at(request, "kind"), "kind")) == "Pod" && at(spec, "containers").is_array();
  if (!asks_for_it(metadata) || !is_pod || has_sidecar(pod, injection.name)) {
    return {Outcome::untouched, json_text(review_response(request, true)), {}, {}, ReviewLimit::none};
  }
  if (at(spec, "hostNetwork") == Json(true)) {
    return refuse(request, "cannot be added to a pod with hostNetwork, whose loopback interface is shared by the node");
  }
  const Result<config::InterceptedText> config = configure(at(metadata, "annotations"));
  if (!config) {
    ReviewResult result = refuse(request, config.fault().detail);
    if (config.fault().kind == FaultKind::body_too_large) result.over = ReviewLimit::overlay;
    return result;
  }
  if (!config->hosts.empty() && at(spec, "shareProcessNamespace") == Json(true)) {
    return refuse(request,
                  "cannot intercept in a pod with shareProcessNamespace, where others may reach the authority's key");
  }
  const Parts parts = config->hosts.empty() ? injection.parts : parts_for(*injection.intercept, config->hosts);
  if (std::string why = conflict_of(pod, parts); !why.empty()) return refuse(request, std::move(why));
  Json review = review_response(request, true);
  review["response"]["patchType"] = "JSONPatch";
  review["response"]["patch"] =
      tls::base64(json_text(patch_of(pod, parts, config->text, std::string(config::version()))));
  return {Outcome::injected, json_text(review), {}, {}, ReviewLimit::none};
}

Reviewer::Reviewer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reviewer::~Reviewer() = default;

Result<std::unique_ptr<Reviewer>> Reviewer::make(std::string_view injection) {
  Result<Injection> parsed = parse_injection(injection);
  if (!parsed) return parsed.take_fault();
  if (const std::string error = errors_of(parsed->config); !error.empty()) {
    return Fault{FaultKind::malformed_request, Side::self, "the injection file: config: " + error};
  }
  return std::make_unique<Reviewer>(std::make_unique<Impl>(Impl{std::move(*parsed)}));
}

ReviewResult Reviewer::review(std::string_view body) const {
  const Result<Json> review = read_json<Json>(body, kBounds);
  if (!review) {
    ReviewResult result = malformed(review.fault().detail);
    if (review.fault().kind == FaultKind::body_too_large) result.over = ReviewLimit::body;
    return result;
  }
  const Json& request = at(*review, "request");
  const std::string uid = text(at(request, "uid"));
  if (text(at(*review, "apiVersion")) != "admission.k8s.io/v1" || uid.empty() || uid.size() > kMaxUid) {
    return malformed({});
  }
  ReviewResult result = impl_->review_pod(request);
  result.pod = name_of(request, at(request, "object"));
  return result;
}

}  // namespace carpool::proxy::webhook
