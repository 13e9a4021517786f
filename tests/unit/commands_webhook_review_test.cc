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
  "config": "[pool]\nsize = 8\n[[origin]]\nuri = \"https://api.example.com\"\nalias = [\"api\"]\n",
  "intercept": {
    "caDir": "/run/ca", "authority": "carpool-ca",
    "initContainers": [{"name": "carpool-ca", "args": ["ca", "init", "/run/ca", "--host"]},
                       {"name": "carpool", "image": "carpool:1", "volumeMounts": [{"name": "ca", "mountPath": "/run/ca"}]}],
    "volumes": [{"name": "carpool-config"}, {"name": "ca"}, {"name": "trust"}],
    "env": [{"name": "HTTPS_PROXY", "value": "http://127.0.0.1:3128"}, {"name": "SSL_CERT_FILE", "value": "/run/trust/bundle.pem"}],
    "volumeMounts": [{"name": "trust", "mountPath": "/run/trust", "readOnly": true}],
    "initVolumeMounts": [{"name": "trust", "mountPath": "/run/trust", "readOnly": true}]
  }
})";

Json pod() {
  return Json::parse(R"({
    "metadata": {"generateName": "app-", "labels": {"carpool.io/inject": "true"}},
    "spec": {"containers": [{"name": "app", "image": "app:1"}]}})");
}

Json pod_that_intercepts(const std::string& hosts) {
  Json asking = pod();
  asking["metadata"].erase("labels");
  asking["metadata"]["annotations"] = {{"carpool.io/intercept", hosts}};
  return asking;
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
  ReviewResult verdict;
  Json response, patch, after;  // the review's response; its patch; the patched pod
};

Answered ask(const Json& pod, const std::string& injection = kInjection) {
  Answered answered;
  const auto reviewer = Reviewer::make(injection);
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

TEST(AReview, KeepsTheVariablesThatAContainerSets) {
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

TEST(AReview, KeepsAProxyVariableInEitherSpelling) {
  for (const char* const name : {"http_proxy", "HTTP_PROXY", "Http_Proxy"}) {
    Json own = pod();
    own["spec"]["containers"][0]["env"] = Json::array({{{"name", name}, {"valueFrom", Json::object()}}});
    own["spec"]["containers"].push_back({{"name", "second"}});
    const Json after = ask(own).after;
    const Json& env = container(after, 0).at("env");
    ASSERT_EQ(env.size(), 2u) << env;
    EXPECT_EQ(env.at(0).at("name"), name);
    EXPECT_EQ(env.at(1).at("name"), "NO_PROXY");
    EXPECT_EQ(container(after, 1).at("env").size(), 2u);
  }
  Json own = pod_that_intercepts("a.test");
  own["spec"]["containers"][0]["env"] = Json::array({{{"name", "ssl_cert_file"}}});
  EXPECT_EQ(container(ask(own).after, 0).at("env").size(), 3u);  // another variable
}

TEST(AReview, RefusesAPodThatHasAnotherVolumeOrContainerOfTheSameName) {
  const auto why = [](Json pod, const char* list, const Json& item) {
    pod["spec"][list].push_back(item);
    const Answered answered = ask(pod);
    return answered.verdict.outcome == Outcome::injected ? "injected" : answered.verdict.why;
  };
  const Json intercepts = pod_that_intercepts("a.test");
  const Json config{{"name", "carpool-config"}, {"emptyDir", Json::object()}};
  EXPECT_EQ(why(pod(), "volumes", config), "the pod has another volume named `carpool-config`");
  EXPECT_EQ(why(pod(), "volumes", {{"name", "ca"}, {"emptyDir", Json::object()}}), "injected");
  EXPECT_EQ(why(intercepts, "volumes", {{"name", "ca"}, {"emptyDir", Json::object()}}),
            "the pod has another volume named `ca`");
  EXPECT_EQ(why(intercepts, "volumes", {{"name", "ca"}}), "injected");  // the same volume
  EXPECT_EQ(why(intercepts, "volumes", {{"name", "trust"}, {"emptyDir", Json::object()}}), "injected");
  EXPECT_EQ(why(intercepts, "initContainers", {{"name", "carpool-ca"}}),
            "the pod has another container named `carpool-ca`");
  EXPECT_EQ(why(intercepts, "containers", {{"name", "carpool-ca"}}),
            "the pod has another container named `carpool-ca`");
  EXPECT_EQ(why(pod(), "containers", {{"name", "carpool-ca"}}), "injected");
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

TEST(AReview, DoesNotLookForTheFilesOfThePod) {
  Json own = pod();
  own["metadata"]["annotations"]["carpool.io/config-overlay"] =
      "[upstream.tls]\nca_file = \"/only/in/the/pod.pem\"\n[admin]\ntoken_file = \"/only/in/the/pod\"\n";
  EXPECT_EQ(ask(own).verdict.outcome, Outcome::injected) << ask(own).verdict.why;
}

// Returns five settings of different types, each a variable, with a default if `defaults`.
std::string with_variables(const std::string& mark, bool defaults) {
  const auto value = [&](const char* otherwise) { return "\"${NAME" + mark + (defaults ? otherwise : "") + "}\""; };
  const std::string secret = "{ file = \"/only/in/the/pod\", prefix = " + value("k") + " }";
  return "[request]\ntimeout = " + value("30s") + "\n[log]\nlevel = " + value("warn") +
         "\n[[origin]]\nuri = " + value("https://a.test") + "\n[origin.pool]\nsize = " + value("7") +
         "\n[origin.request.headers]\nX-Key = " + secret + "\nX-Other = " + value("k") + "\n";
}

ReviewResult overlaid(const std::string& text) {
  Json own = pod();
  own["metadata"]["annotations"]["carpool.io/config-overlay"] = text;
  return ask(own).verdict;
}

TEST(AReview, TakesVariablesByTheirDefaultsAndLeavesTheOthersToThePod) {
  const std::pair<const char*, bool> cases[] = {{":-", true}, {"", false}, {":-", false}, {":?", false}};
  for (const auto& [mark, defaults] : cases) {
    const std::string text = with_variables(mark, defaults);
    EXPECT_EQ(overlaid(text).outcome, Outcome::injected) << text << overlaid(text).why;
    const Json injection{{"initContainers", Json::array({{{"name", "c"}}})}, {"config", text}};
    EXPECT_TRUE(Reviewer::make(injection.dump())) << text;
  }
  EXPECT_TRUE(overlaid("request.timeout = \"${NAME:-30}\"\n").why.find("request.timeout") != std::string::npos);
  EXPECT_TRUE(overlaid("request.timeout = \"${NAME:30s}\"\n").why.find("is not understood") != std::string::npos);
  EXPECT_TRUE(overlaid("request.timeout = \"${NAME\"\n").why.find("has no closing brace") != std::string::npos);
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

std::string config_of(const Json& pod) {
  return pod.at("metadata").at("annotations").at(kEffective).get<std::string>();
}

TEST(AnInterceptAnnotation, IsAllThatAPodNeeds) {
  const Answered answered = ask(pod_that_intercepts("api.example.com, S3.example.com."));
  ASSERT_EQ(answered.verdict.outcome, Outcome::injected) << answered.verdict.why;
  const Json& spec = answered.after.at("spec");
  EXPECT_EQ(spec.at("initContainers").at(0).at("args").dump(),
            R"(["ca","init","/run/ca","--host","api.example.com","s3.example.com"])");
  EXPECT_EQ(spec.at("initContainers").at(1).at("name"), "carpool");
  EXPECT_EQ(spec.at("volumes").size(), 3u);
  EXPECT_EQ(container(answered.after, 0).at("env").at(1).at("name"), "SSL_CERT_FILE");
  EXPECT_EQ(answered.after.at("metadata").at("labels").at(kLabel), "true");
  const std::string config = config_of(answered.after);
  EXPECT_NE(config.find("ca_dir = '/run/ca'"), std::string::npos) << config;
  EXPECT_NE(config.find("https://s3.example.com"), std::string::npos) << config;
  EXPECT_EQ(config.find("https://api.example.com"), config.rfind("https://api.example.com")) << config;
  EXPECT_EQ(ask(answered.after).verdict.outcome, Outcome::untouched);
}

TEST(AnInterceptAnnotation, GivesNoContainerOfTheApplicationTheKey) {
  Json busy = pod_that_intercepts("true");
  busy["spec"]["initContainers"] = Json::array({{{"name", "migrate"}}});
  const Json after = ask(busy).after;
  const Json& migrate = after.at("spec").at("initContainers").at(2);
  EXPECT_EQ(migrate.at("volumeMounts").dump(), R"([{"mountPath":"/run/trust","name":"trust","readOnly":true}])");
  EXPECT_FALSE(migrate.contains("env")) << "an init container does not use carpool unasked";
  EXPECT_EQ(container(after, 0).at("volumeMounts"), migrate.at("volumeMounts"));
}

TEST(AnInterceptAnnotation, IsRefusedInAPodWhoseContainersSeeEachOthersFiles) {
  Json shared = pod_that_intercepts("true");
  shared["spec"]["shareProcessNamespace"] = true;
  EXPECT_NE(ask(shared).verdict.why.find("shareProcessNamespace"), std::string::npos);
  EXPECT_EQ(ask(shared).verdict.outcome, Outcome::refused);
  shared["metadata"] = pod()["metadata"];
  EXPECT_EQ(ask(shared).verdict.outcome, Outcome::injected) << "without a key nothing is to be guarded";
}

TEST(AnInterceptAnnotation, SwitchesTheOriginsOfTheConfiguration) {
  EXPECT_NE(config_of(ask(pod_that_intercepts("true")).after).find("intercept = true"), std::string::npos);
  EXPECT_EQ(ask(pod_that_intercepts("false")).verdict.outcome, Outcome::untouched);
  for (const char* nothing : {"", " false", "false ", ",,,"}) {
    EXPECT_EQ(ask(pod_that_intercepts(nothing)).verdict.outcome, Outcome::untouched) << nothing;
  }
  Json off = pod();
  off["metadata"]["annotations"] = {
      {"carpool.io/intercept", "false"},
      {"carpool.io/config-overlay", "[[origin]]\nuri = \"https://api.example.com\"\nintercept = true\n"}};
  const Json without = ask(off).after;
  EXPECT_EQ(without.at("spec").at("initContainers").size(), 1u);
  EXPECT_NE(config_of(without).find("intercept = false"), std::string::npos);
  off["metadata"]["annotations"].erase("carpool.io/intercept");
  const Json with = ask(off).after;
  EXPECT_EQ(with.at("spec").at("initContainers").size(), 2u) << "an overlay may ask for it as well";
  EXPECT_NE(config_of(with).find("ca_dir"), std::string::npos);
}

TEST(AnInterceptAnnotation, OfFalseRemovesTheFolderThatThePodDoesNotHave) {
  Json base = Json::parse(kInjection);
  base["config"] =
      "[intercept]\nca_dir = \"/run/ca\"\n[[origin]]\nuri = \"https://api.example.com\"\nintercept = true\n";
  Json off = pod();
  EXPECT_NE(config_of(ask(off, base.dump()).after).find("ca_dir"), std::string::npos);
  off["metadata"]["annotations"] = {{"carpool.io/intercept", "false"}};
  const Json without = ask(off, base.dump()).after;
  EXPECT_EQ(without.at("spec").at("volumes").size(), 1u);
  EXPECT_EQ(config_of(without).find("ca_dir"), std::string::npos) << config_of(without);
}

TEST(AnInterceptAnnotation, YieldsToALabelThatSaysNo) {
  Json no = pod_that_intercepts("true");
  no["metadata"]["labels"] = {{"carpool.io/inject", "false"}};
  EXPECT_EQ(ask(no).verdict.outcome, Outcome::untouched);
}

TEST(AnInterceptAnnotation, IsRefusedWithTheWordThatIsNoHost) {
  const std::pair<std::string, const char*> cases[] = {{"*.example.com", "`*.example.com` is a pattern"},
                                                       {"yes", "`yes` is not a host"},
                                                       {"api.example.com true", "`true` is not a host"},
                                                       {"a:b:c", "`a:b:c`"},
                                                       {"http://a.test", "`http://a.test` is not a host"},
                                                       {"10.0.0.1", "`10.0.0.1` is an address"},
                                                       {"-x.test", "`-x.test` is not a host: it begins with -"},
                                                       {"a.test,--replace", "`--replace` is not a host"},
                                                       {std::string(300, 'a'), "is too long"},
                                                       {std::string(300000, ','), "is longer than"}};
  for (const auto& [hosts, says] : cases) {
    const Answered answered = ask(pod_that_intercepts(hosts));
    EXPECT_EQ(answered.verdict.outcome, Outcome::refused) << hosts.substr(0, 50);
    EXPECT_NE(answered.verdict.why.find(says), std::string::npos) << answered.verdict.why;
    EXPECT_TRUE(answered.verdict.why.starts_with("carpool.io/intercept: ")) << answered.verdict.why;
  }
  std::string many;
  for (int i = 0; i < 257; ++i) many += "h" + std::to_string(i) + ".test ";
  EXPECT_NE(ask(pod_that_intercepts(many)).verdict.why.find("more than 256"), std::string::npos);
}

TEST(AnInterceptAnnotation, IsRefusedWhereAnOriginCannotBeIntercepted) {
  Json unverified = pod_that_intercepts("api.example.com");
  unverified["metadata"]["annotations"]["carpool.io/config-overlay"] =
      "[[origin]]\nuri = \"https://api.example.com\"\n[origin.upstream.tls]\nverify = false\n";
  EXPECT_NE(ask(unverified).verdict.why.find("verify"), std::string::npos) << ask(unverified).verdict.why;
  Json elsewhere = pod_that_intercepts("true");
  elsewhere["metadata"]["annotations"]["carpool.io/config-overlay"] = "[intercept]\nca_dir = \"/mine\"\n";
  EXPECT_NE(ask(elsewhere).verdict.why.find("expected /run/ca"), std::string::npos) << ask(elsewhere).verdict.why;
}

TEST(AnInjection, IsRefusedWhereItsInterceptPartsAreIncomplete) {
  for (const char* const intercept : {"7", "{}", R"({"caDir": "/x", "authority": ""})",
                                      R"({"caDir": "/x", "authority": "ca", "containers": [{"name": "c"}]})",
                                      R"({"caDir": "/x", "authority": "ca", "containers": [{"name": "c"}],
                                          "initContainers": [{"name": "ca", "args": 7}]})"}) {
    const std::string file =
        std::string(R"({"initContainers": [{"name": "c"}], "config": "", "intercept": )") + intercept + "}";
    EXPECT_FALSE(Reviewer::make(file)) << intercept;
  }
}

TEST(AnInjection, IsRefusedWhereAMountHasNoPath) {
  for (const char* const list : {"volumeMounts", "initVolumeMounts"}) {
    for (const char* const path : {"", R"(, "mountPath": 7)"}) {
      const auto made = Reviewer::make(R"({"initContainers": [{"name": "c"}], "config": "", ")" + std::string(list) +
                                       R"(": [{"name": "x")" + path + "}]}");
      ASSERT_FALSE(made) << list << path;
      EXPECT_EQ(made.fault().detail,
                "the injection file: " + std::string(list) + " is not a list of objects with a name and a mountPath");
    }
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
