// Unit tests of the admission webhook without a network: an AdmissionReview in, its response out.
#include "proxy/commands/webhook/review.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "proxy/commands/webhook/patch.h"

namespace carpool::proxy::webhook {
namespace {

const char* const kInjection = R"({
  "initContainers": [{"name": "carpool", "image": "carpool:1", "restartPolicy": "Always"}],
  "volumes": [{"name": "carpool-config", "downwardAPI": {"items": []}}],
  "env": [{"name": "HTTP_PROXY", "value": "http://127.0.0.1:3128"}, {"name": "NO_PROXY", "value": "localhost"}],
  "volumeMounts": [{"name": "carpool-socket", "mountPath": "/run/carpool"}],
  "config": "[pool]\nsize = 8\n[[origin]]\nuri = \"https://api.example.com\"\nalias = [\"api\"]\n"
})";

Json pod() {
  return Json::parse(R"({
    "metadata": {"generateName": "app-", "labels": {"carpool.io/inject": "true"}},
    "spec": {"containers": [{"name": "app", "image": "app:1"}]}})");
}

std::string review_of(const Json& pod) {
  return Json{{"apiVersion", "admission.k8s.io/v1"},
              {"kind", "AdmissionReview"},
              {"request",
               {{"uid", "7"}, {"kind", {{"version", "v1"}, {"kind", "Pod"}}}, {"namespace", "shop"}, {"object", pod}}}}
      .dump();
}

std::string decoded(const std::string& text) {
  const std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = (bits << 6) | static_cast<unsigned>(letters.find(c));
    count += 6;
    if (count >= 8) out += static_cast<char>((bits >> (count -= 8)) & 255);
  }
  return out;
}

struct Answered {
  Verdict verdict;
  Json response, patch, after;  // the review's response; its patch; the pod with it applied
};

Answered ask(const Json& pod) {
  Answered answered;
  const auto reviewer = Reviewer::make(kInjection);
  answered.verdict = (*reviewer)->review(review_of(pod));
  answered.response = Json::parse(answered.verdict.body).at("response");
  answered.after = pod;
  if (!answered.response.contains("patch")) return answered;
  answered.patch = Json::parse(decoded(answered.response.at("patch").get<std::string>()));
  answered.after = pod.patch(answered.patch);
  return answered;
}

const Json& container(const Json& pod, int number) {
  return pod.at("spec").at("containers").at(static_cast<std::size_t>(number));
}

TEST(AReview, AddsTheSidecarToAPodThatAsksForIt) {
  const Answered answered = ask(pod());
  EXPECT_EQ(answered.verdict.outcome, Outcome::injected);
  EXPECT_EQ(answered.verdict.pod, "shop/app-");
  EXPECT_EQ(answered.response.at("uid"), "7");
  EXPECT_EQ(answered.response.at("allowed"), true);
  EXPECT_EQ(answered.response.at("patchType"), "JSONPatch");
  EXPECT_EQ(answered.after.at("spec").at("initContainers").at(0).at("name"), "carpool");
  EXPECT_EQ(answered.after.at("spec").at("volumes").size(), 1u);
  EXPECT_EQ(container(answered.after, 0).at("env").size(), 2u);
  EXPECT_EQ(container(answered.after, 0).at("volumeMounts").at(0).at("mountPath"), "/run/carpool");
  const Json& annotations = answered.after.at("metadata").at("annotations");
  EXPECT_NE(annotations.at(kEffective).get<std::string>().find("size = 8"), std::string::npos);
  EXPECT_TRUE(annotations.contains(kInjected));
}

TEST(AReview, ChangesNothingASecondTime) {
  const Answered again = ask(ask(pod()).after);
  EXPECT_EQ(again.verdict.outcome, Outcome::untouched);
  EXPECT_EQ(again.response.at("allowed"), true);
  EXPECT_FALSE(again.response.contains("patch"));
}

TEST(AReview, LeavesAPodAloneThatBringsItsOwnSidecarAsAnOrdinaryContainer) {
  Json own = pod();
  own["spec"]["containers"].push_back({{"name", "carpool"}, {"image", "carpool:0"}});
  EXPECT_EQ(ask(own).verdict.outcome, Outcome::untouched);
}

TEST(AReview, LeavesPodsAloneThatDoNotAsk) {
  for (const char* const value : {"", "false", "yes", "True"}) {
    Json no_data_pending = pod();
    no_data_pending["metadata"]["labels"]["carpool.io/inject"] = value;
    EXPECT_EQ(ask(no_data_pending).verdict.outcome, Outcome::untouched) << value;
  }
  Json bare = pod();
  bare.erase("metadata");
  EXPECT_EQ(ask(bare).verdict.outcome, Outcome::untouched);
}

TEST(AReview, PutsTheSidecarBeforeThePodsOwnInitContainers) {
  Json busy = pod();
  busy["spec"]["initContainers"] = Json::array({{{"name", "migrate"}}});
  const Json after = ask(busy).after;
  EXPECT_EQ(after.at("spec").at("initContainers").at(0).at("name"), "carpool");
  EXPECT_EQ(after.at("spec").at("initContainers").at(1).at("name"), "migrate");
}

TEST(AReview, KeepsWhatAContainerSaysItself) {
  Json own = pod();
  own["spec"]["containers"][0]["env"] = Json::array({{{"name", "HTTP_PROXY"}, {"value", "http://mine"}}});
  own["spec"]["volumes"] = Json::array({{{"name", "data"}}});
  own["metadata"]["annotations"] = {{"a/b~c", "kept"}};
  const Json after = ask(own).after;
  const Json& env = container(after, 0).at("env");
  ASSERT_EQ(env.size(), 2u);
  EXPECT_EQ(env.at(0).at("value"), "http://mine");
  EXPECT_EQ(env.at(1).at("name"), "NO_PROXY");
  EXPECT_EQ(after.at("spec").at("volumes").size(), 2u);
  EXPECT_EQ(after.at("metadata").at("annotations").at("a/b~c"), "kept");
}

TEST(AReview, GivesEveryContainerTheVariables) {
  Json two = pod();
  two["spec"]["containers"].push_back({{"name", "second"}});
  const Json after = ask(two).after;
  EXPECT_EQ(container(after, 0).at("env").size(), 2u);
  EXPECT_EQ(container(after, 1).at("env").size(), 2u);
}

TEST(AReview, LaysTheAnnotationOverTheConfiguration) {
  Json own = pod();
  own["metadata"]["annotations"]["carpool.io/config-overlay"] =
      "[[origin]]\nuri = \"https://api.example.com\"\npool = {size = 3}\n[[origin]]\nuri = \"http://other\"\n";
  const Answered answered = ask(own);
  ASSERT_EQ(answered.verdict.outcome, Outcome::injected);
  const std::string config = answered.after.at("metadata").at("annotations").at(kEffective).get<std::string>();
  EXPECT_NE(config.find("size = 8"), std::string::npos) << config;  // the pool's default stays
  EXPECT_NE(config.find("size = 3"), std::string::npos) << config;
  EXPECT_NE(config.find("api"), std::string::npos) << config;  // the origin's alias stays
  EXPECT_NE(config.find("http://other"), std::string::npos) << config;
  EXPECT_EQ(config.find("api.example.com"), config.rfind("api.example.com")) << config;  // one origin, not two
}

TEST(AReview, RefusesAnAnnotationThatMakesNoConfigurationAndSaysWhy) {
  const std::pair<const char*, const char*> cases[] = {
      {"[pool]\nsise = 3\n", "pool.sise"}, {"[pool\n", "1:6"}, {"[pool]\nsize = \"many\"\n", "pool.size"}};
  for (const auto& [text, word] : cases) {
    Json own = pod();
    own["metadata"]["annotations"]["carpool.io/config-overlay"] = text;
    const Answered answered = ask(own);
    EXPECT_EQ(answered.verdict.outcome, Outcome::refused) << text;
    EXPECT_EQ(answered.response.at("allowed"), false);
    const std::string why = answered.response.at("status").at("message").get<std::string>();
    EXPECT_NE(why.find(word), std::string::npos) << why;
    EXPECT_NE(why.find("carpool.io/config-overlay"), std::string::npos) << why;
  }
}

TEST(AReview, RefusesAPodOfTheNodesNetwork) {
  Json host = pod();
  host["spec"]["hostNetwork"] = true;
  EXPECT_EQ(ask(host).verdict.outcome, Outcome::refused);
}

TEST(AReview, IsAnErrorWhenItIsNoReview) {
  const auto reviewer = Reviewer::make(kInjection);
  for (const char* const body : {"", "{", "[]", "{}", R"({"apiVersion":"admission.k8s.io/v1","request":7})",
                                 R"({"apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"1"}})"}) {
    EXPECT_EQ((*reviewer)->review(body).outcome, Outcome::malformed) << body;
  }
}

TEST(AReview, SurvivesFieldsOfOtherTypes) {
  const auto reviewer = Reviewer::make(kInjection);
  for (const char* const object : {"7", "[]", R"({"metadata":[],"spec":7})", R"({"spec":{"containers":{}}})",
                                   R"({"metadata":{"labels":{"carpool.io/inject":"true"},"annotations":3},)"
                                   R"("spec":{"containers":[7,null],"initContainers":"x","volumes":{}}})"}) {
    const Json pod = Json::parse(object);
    EXPECT_NE((*reviewer)->review(review_of(pod)).outcome, Outcome::malformed) << object;
  }
}

TEST(AnInjection, IsRefusedWhereItIsIncompleteOrItsConfigurationIsWrong) {
  EXPECT_FALSE(Reviewer::make("{"));
  EXPECT_FALSE(Reviewer::make(R"({"config": ""})"));
  EXPECT_FALSE(Reviewer::make(R"({"initContainers": [{"name": "carpool"}]})"));
  EXPECT_FALSE(Reviewer::make(R"({"initContainers": [{}], "config": ""})"));
  const auto wrong = Reviewer::make(R"({"initContainers": [{"name": "c"}], "config": "[pool]\nsise = 1\n"})");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.fault().detail.find("pool.sise"), std::string::npos);
}

}  // namespace
}  // namespace carpool::proxy::webhook
