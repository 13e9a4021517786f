#include "proxy/webhook/review.h"

#include <utility>

#include "proxy/config/options.h"
#include "proxy/config/read.h"
#include "proxy/config/read_overlay.h"
#include "proxy/tls/digest.h"
#include "proxy/webhook/injection.h"
#include "proxy/webhook/patch.h"

namespace carpool::proxy::webhook {
namespace {

constexpr const char* kLabel = "carpool.io/inject";
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

// What is wrong with a configuration, one mistake a line; empty: nothing. What the environment will hold is the pod's.
std::string mistakes_of(const std::string& config) {
  const config::Env any = [](std::string_view) { return std::optional<std::string>("1"); };
  std::string all;
  for (const config::Mistake& mistake : config::read_text(config, "", any).mistakes) {
    all.append(all.empty() ? "" : "\n").append(mistake.key).append(": ").append(mistake.text);
  }
  return all;
}

std::string name_of(const Json& request, const Json& pod) {
  const Json& metadata = at(pod, "metadata");
  std::string name = text(at(metadata, "name"));
  if (name.empty()) name = text(at(metadata, "generateName"));  // the API server has not made it yet
  return text(at(request, "namespace")) + "/" + name;
}

Json answer_to(const Json& request, bool allowed) {
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"response", {{"uid", text(at(request, "uid"))}, {"allowed", allowed}}}};
}

}  // namespace

struct Reviewer::Impl {
  Injection injection;

  Verdict judge(const Json& request) const;
  Verdict refuse(const Json& request, std::string why) const;
};

Verdict Reviewer::Impl::refuse(const Json& request, std::string why) const {
  Json answer = answer_to(request, false);
  answer["response"]["status"] = {{"code", 400}, {"message", "carpool: " + why}};
  return {Outcome::refused, answer.dump(), {}, std::move(why)};
}

Verdict Reviewer::Impl::judge(const Json& request) const {
  const Json& pod = at(request, "object");
  const Json& spec = at(pod, "spec");
  const Json& metadata = at(pod, "metadata");
  const bool asked = text(at(at(metadata, "labels"), kLabel)) == "true";
  const bool is_pod = text(at(at(request, "kind"), "kind")) == "Pod" && at(spec, "containers").is_array();
  if (!asked || !is_pod || has_sidecar(pod, injection.name)) {
    return {Outcome::untouched, answer_to(request, true).dump(), {}, {}};
  }
  if (at(spec, "hostNetwork") == Json(true)) {
    return refuse(request, "is not added to a pod of the node's network: the loopback there is everybody's");
  }
  std::string config = injection.config;
  if (const std::string over = text(at(at(metadata, "annotations"), kOverlay)); !over.empty()) {
    Result<std::string> merged = config::overlay(config, over);
    if (!merged) return refuse(request, std::string(kOverlay) + ": " + merged.fault().detail);
    config = std::move(*merged);
    if (const std::string wrong = mistakes_of(config); !wrong.empty()) {
      return refuse(request, std::string(kOverlay) + ": " + wrong);
    }
  }
  Json answer = answer_to(request, true);
  answer["response"]["patchType"] = "JSONPatch";
  answer["response"]["patch"] = tls::base64(patch_of(pod, injection, config, std::string(config::version())).dump());
  return {Outcome::injected, answer.dump(), {}, {}};
}

Reviewer::Reviewer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reviewer::~Reviewer() = default;

Result<std::unique_ptr<Reviewer>> Reviewer::make(std::string_view injection) {
  Result<Injection> parsed = parse_injection(injection);
  if (!parsed) return parsed.take_fault();
  if (const std::string wrong = mistakes_of(parsed->config); !wrong.empty()) {
    return Fault{FaultKind::malformed_request, Side::self, "the injection file: config: " + wrong};
  }
  return std::make_unique<Reviewer>(std::make_unique<Impl>(Impl{std::move(*parsed)}));
}

Verdict Reviewer::review(std::string_view body) const {
  const Json review = Json::parse(body, nullptr, false);
  const Json& request = at(review, "request");
  if (text(at(review, "apiVersion")) != "admission.k8s.io/v1" || text(at(request, "uid")).empty()) {
    return {Outcome::malformed, Json{{"error", "expected an AdmissionReview of admission.k8s.io/v1"}}.dump(), {}, {}};
  }
  Verdict verdict = impl_->judge(request);
  verdict.pod = name_of(request, at(request, "object"));
  return verdict;
}

}  // namespace carpool::proxy::webhook
