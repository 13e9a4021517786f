// Unit tests of PrometheusCollectable: every metric of the catalog in prometheus-cpp's model, our text compared with
// the library's, and a scrape through the library's Exposer.
#include "metrics/prometheus_collectable.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <prometheus/exposer.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "metrics/catalog.h"
#include "metrics/prometheus.h"
#include "tests/unit/metrics_full_scrape.h"

namespace carpool::metrics {
namespace {

class Source final : public SampleSource {
 public:
  Sample sample() const override { return known; }
  Sample known = full_sample();
};

// A registry and a source with the given number of origins, all of them with every metric.
struct Scene {
  explicit Scene(int origins) : registry(1, static_cast<std::uint32_t>(origins)) {
    for (int i = 0; i < origins; ++i) {
      const std::string label = "http://origin-" + std::to_string(i) + ".example/\"\\\n";
      record_everything(registry, label);
      source.known.origins.push_back(full_origin(label));
    }
  }
  Registry registry;
  Source source;
};

prometheus::MetricType type_of(Type type) {
  return type == Type::counter ? prometheus::MetricType::Counter
         : type == Type::gauge ? prometheus::MetricType::Gauge
                               : prometheus::MetricType::Histogram;
}

std::string names_of(const prometheus::ClientMetric& metric) {
  std::string names;
  for (const auto& label : metric.label) names += (names.empty() ? "" : ",") + label.name;
  return names;
}

TEST(Collectable, HasEveryMetricOfTheCatalogOnceInItsOrderWithItsTypeAndLabels) {
  const Scene scene(3);
  const std::vector<prometheus::MetricFamily> all = PrometheusCollectable(scene.registry, scene.source).Collect();
  ASSERT_EQ(all.size(), catalog().size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].name, catalog()[i].metric.name);
    EXPECT_EQ(all[i].help, catalog()[i].metric.help);
    EXPECT_EQ(all[i].type, type_of(catalog()[i].metric.type)) << all[i].name;
    ASSERT_FALSE(all[i].metric.empty()) << all[i].name;
    for (const auto& metric : all[i].metric) EXPECT_EQ(names_of(metric), catalog()[i].metric.labels) << all[i].name;
  }
}

TEST(Collectable, IsWrittenByTheLibraryByteForByteAsCarpoolWritesEveryFamily) {
  for (const int origins : {0, 1, 3, 300}) {
    const Scene scene(origins);
    const auto all = PrometheusCollectable(scene.registry, scene.source).Collect();
    const std::string ours = exposition(scene.registry, scene.source.sample());
    std::istringstream text(ours);
    for (const prometheus::MetricFamily& family : all) {
      std::istringstream theirs(prometheus::TextSerializer().Serialize({family}));
      for (std::string wanted, line; std::getline(theirs, wanted);) {
        ASSERT_TRUE(std::getline(text, line)) << wanted;
        ASSERT_EQ(line, wanted);
      }
    }
    EXPECT_EQ(ours, prometheus::TextSerializer().Serialize(all));
  }
}

std::string get(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string response;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0) {
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: carpool.test\r\nConnection: close\r\n\r\n";
    EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    char part[4096];
    for (ssize_t n = 0; (n = read(fd, part, sizeof(part))) > 0;) response.append(part, static_cast<std::size_t>(n));
  }
  close(fd);
  return response;
}

TEST(Collectable, IsServedByTheLibrarysExposer) {
  const Scene scene(2);
  prometheus::Exposer exposer("127.0.0.1:0", 1);
  const auto registered = std::make_shared<PrometheusCollectable>(scene.registry, scene.source);
  exposer.RegisterCollectable(registered);
  const std::string response = get(exposer.GetListeningPorts().at(0), "/metrics");
  EXPECT_EQ(response.rfind("HTTP/1.1 200", 0), 0U) << response.substr(0, 200);
  // The exposer adds metrics of its own after ours.
  const std::string body = response.substr(response.find("\r\n\r\n") + 4);
  EXPECT_NE(body.find(exposition(scene.registry, scene.source.sample())), std::string::npos) << body.substr(0, 2000);
}

}  // namespace
}  // namespace carpool::metrics
