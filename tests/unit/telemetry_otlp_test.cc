// Unit tests of spans in OTLP's encoding, of the envelope around them, and of the buffer in which they wait. The field
// numbers are those of opentelemetry-proto; the end-to-end tests read the same bytes with its own classes.
#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "base/protobuf.h"
#include "metrics/registry.h"
#include "proxy/telemetry/otlp_envelope.h"
#include "proxy/telemetry/otlp_metrics.h"
#include "proxy/telemetry/otlp_spans.h"
#include "proxy/telemetry/span_buffer.h"
#include "tests/unit/metrics_full_scrape.h"

namespace carpool::proxy {
namespace {

using namespace std::chrono_literals;
using Fields = std::multimap<std::uint32_t, ProtobufReader::Field>;

Fields fields_of(std::string_view message) {
  Fields found;
  ProtobufReader reader(message);
  while (const auto field = reader.next()) found.emplace(field->number, *field);
  EXPECT_TRUE(reader.valid());
  return found;
}

// The attributes of a message, in field `number`, as text.
std::map<std::string, std::string> attributes_of(const Fields& message, std::uint32_t number) {
  std::map<std::string, std::string> found;
  for (auto [at, end] = message.equal_range(number); at != end; ++at) {
    const Fields pair = fields_of(at->second.bytes);
    const Fields value = fields_of(pair.find(2)->second.bytes);
    const auto& [kind, one] = *value.begin();
    found[std::string(pair.find(1)->second.bytes)] = kind == 1 ? std::string(one.bytes) : std::to_string(one.value);
  }
  return found;
}

Span full_span() {
  Span span;
  span.trace = {0x4bf92f3577b34da6, 0xa3ce929d0e0e4736};
  span.id = 0x00f067aa0ba902b7;
  span.parent = 1;
  span.flags = 1;
  span.to_origin = true;
  span.began = Instant(1s);
  span.ended = Instant(3s);
  span.send = Instant(2s);
  span.method = "GET";
  span.scheme = "https";
  span.host = "api.test";
  span.port = 443;
  span.target = "/x";
  span.status = 200;
  span.protocol_version = "2";
  return span;
}

Fields encoded(const Span& span) {
  static std::list<std::string> kept;  // the fields are views
  std::string& out = kept.emplace_back();
  otlp::append_span(out, span, 10s);
  const Fields around = fields_of(out);
  EXPECT_EQ(1U, around.count(2)) << "ScopeSpans.spans";
  return fields_of(around.find(2)->second.bytes);
}

TEST(ASpanOfOtlp, HasTheFieldsOfTraceProto) {
  const Fields span = encoded(full_span());
  EXPECT_EQ("\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36", span.find(1)->second.bytes);
  EXPECT_EQ(std::string_view("\x00\xf0\x67\xaa\x0b\xa9\x02\xb7", 8), span.find(2)->second.bytes);
  EXPECT_EQ(std::string_view("\0\0\0\0\0\0\0\1", 8), span.find(4)->second.bytes);
  EXPECT_EQ("GET", span.find(5)->second.bytes);
  EXPECT_EQ(3U, span.find(6)->second.value) << "SPAN_KIND_CLIENT";
  EXPECT_EQ(11'000'000'000U, span.find(7)->second.value);
  EXPECT_EQ(13'000'000'000U, span.find(8)->second.value);
  EXPECT_EQ(0x301U, span.find(16)->second.value) << "sampled, and the parent is remote";
  EXPECT_EQ(0U, span.count(15)) << "no status";
  const Fields event = fields_of(span.find(11)->second.bytes);
  EXPECT_EQ(1U, span.count(11));
  EXPECT_EQ(12'000'000'000U, event.find(1)->second.value);
  EXPECT_EQ("carpool.send", event.find(2)->second.bytes);
  const auto said = attributes_of(span, 9);
  EXPECT_EQ("https://api.test:443/x", said.at("url.full"));
  EXPECT_EQ("200", said.at("http.response.status_code"));
  EXPECT_EQ("2", said.at("network.protocol.version"));
  EXPECT_EQ(0U, said.count("error.type"));
}

TEST(ASpanOfOtlp, WithoutAParentBeginsItsTrace) {
  Span span = full_span();
  span.parent = 0;
  const Fields made = encoded(span);
  EXPECT_EQ(0U, made.count(4));
  EXPECT_EQ(0x101U, made.find(16)->second.value);
}

TEST(ASpanOfOtlp, OfAFailureHasAnErrorsStatus) {
  Span span = full_span();
  span.error_type = "connect_refused";
  span.error = "refused \xFF";
  const Fields made = encoded(span);
  const Fields status = fields_of(made.find(15)->second.bytes);
  EXPECT_EQ(2U, status.find(3)->second.value) << "STATUS_CODE_ERROR";
  EXPECT_EQ("refused ?", status.find(2)->second.bytes);
  EXPECT_EQ("connect_refused", attributes_of(made, 9).at("error.type"));
}

TEST(ASpanOfOtlp, NamesNoMethodThatNoStandardKnows) {
  Span span = full_span();
  span.method = "BREW";
  const Fields made = encoded(span);
  EXPECT_EQ("HTTP", made.find(5)->second.bytes);
  EXPECT_EQ("_OTHER", attributes_of(made, 9).at("http.request.method"));
  EXPECT_EQ("BREW", attributes_of(made, 9).at("http.request.method_original"));
}

TEST(ASpanOfOtlp, IsNeverLargerThanItsBound) {
  const std::string longest(100'000, 'x');
  Span span = full_span();
  span.began = span.ended = span.wait = span.dial = span.send = span.first_byte = Instant(1s);
  span.method = span.host = span.target = span.error = span.not_repeated = longest;
  span.scheme = "https";
  span.error_type = span.opened = span.retried = "informational_limit";
  span.asked_pool = true;
  span.bytes_in = span.bytes_out = span.connection = UINT64_MAX;
  span.reuse = span.retries = UINT32_MAX;
  std::string out;
  otlp::append_span(out, span, Duration{});
  EXPECT_LE(out.size(), otlp::kMaxSpan);
}

TEST(AnEnvelopeOfOtlp, NamesTheResourceAndTheScopeAndEndsWithTheSpans) {
  config::Otlp settings;
  settings.service_name = "orders";
  settings.resource = {"k8s.pod.name=pod-1", "a=b=c"};
  std::string spans;
  otlp::append_span(spans, full_span(), Duration{});
  otlp::append_span(spans, full_span(), Duration{});
  const std::string request = otlp::envelope(settings, "me", spans.size()) + spans;
  const Fields around = fields_of(request);
  const Fields one = fields_of(around.find(1)->second.bytes);
  const auto resource = attributes_of(fields_of(one.find(1)->second.bytes), 1);
  EXPECT_EQ("orders", resource.at("service.name"));
  EXPECT_EQ("me", resource.at("service.instance.id"));
  EXPECT_EQ("pod-1", resource.at("k8s.pod.name"));
  EXPECT_EQ("b=c", resource.at("a"));
  const Fields scope = fields_of(one.find(2)->second.bytes);
  EXPECT_EQ("carpool", fields_of(scope.find(1)->second.bytes).find(1)->second.bytes);
  EXPECT_EQ(2U, scope.count(2));
}

TEST(AResponseOfOtlp, SaysWhatWasRejected) {
  std::string body;
  ProtobufWriter out(body);
  const std::size_t partial = out.begin(1);
  out.number(1, 7);
  out.bytes(2, "no \x1b room");
  out.end(partial);
  const Result<otlp::ExportResponse> response = otlp::read_response(body);
  ASSERT_TRUE(response);
  EXPECT_EQ(7U, response->rejected);
  EXPECT_EQ("no ? room", response->message);
  EXPECT_EQ(0U, otlp::read_response("")->rejected);
  EXPECT_FALSE(otlp::read_response("<html>"));
  EXPECT_FALSE(otlp::read_response("\x0a\x02\x0a\x7f"));
}

TEST(MetricsOfOtlp, NameEachFamilyOnceHoweverManyOriginsItHas) {
  constexpr int kOrigins = 400;  // a family comes in several parts
  metrics::Registry registry(1, kOrigins);
  metrics::Sample sample;
  for (int i = 0; i < kOrigins; ++i) {
    const std::string label = "http://o" + std::to_string(i);
    metrics::record_everything(registry, label);
    sample.origins.push_back(metrics::full_origin(label));
  }
  const std::string bytes = otlp::encode_metrics({registry, std::move(sample)}, {5, 7});
  const Fields all = fields_of(bytes);
  std::map<std::string, Fields> named;
  for (const auto& [field, metric] : all) {
    EXPECT_EQ(2U, field) << "ScopeMetrics.metrics";
    const Fields one = fields_of(metric.bytes);
    EXPECT_TRUE(named.emplace(one.find(1)->second.bytes, one).second);
  }
  const Fields borrows = fields_of(named.at("carpool_pool_borrows_total").find(7)->second.bytes);
  EXPECT_EQ(static_cast<std::size_t>(kOrigins), borrows.count(1));
  EXPECT_EQ(2U, borrows.find(2)->second.value) << "cumulative";
  EXPECT_EQ(1U, borrows.find(3)->second.value) << "monotonic";
  const Fields point = fields_of(borrows.find(1)->second.bytes);
  EXPECT_EQ(5U, point.find(2)->second.value);
  EXPECT_EQ(7U, point.find(3)->second.value);
  EXPECT_EQ("http://o0", attributes_of(point, 7).at("origin"));
  EXPECT_EQ(1U, named.at("carpool_pool_size").count(5)) << "a gauge";
  EXPECT_EQ(0U, named.count("carpool_pool_connection_age_seconds")) << "OTLP has no histogram whose counts fall";
}

TEST(MetricsOfOtlp, HaveHistogramsWithAllTheirBounds) {
  metrics::Registry registry(1, 10);
  metrics::record_everything(registry, "http://a");
  const std::string bytes = otlp::encode_metrics({registry, {}}, {5, 7});
  Fields histogram;
  for (const auto& [field, metric] : fields_of(bytes)) {
    const Fields one = fields_of(metric.bytes);
    if (one.find(1)->second.bytes != "carpool_request_seconds") continue;
    EXPECT_EQ("s", one.find(3)->second.bytes);
    histogram = fields_of(one.find(9)->second.bytes);
  }
  ASSERT_EQ(1U, histogram.count(1));
  const Fields point = fields_of(histogram.find(1)->second.bytes);
  EXPECT_EQ(metrics::kMinValues + 1, point.find(4)->second.value);
  EXPECT_EQ(8 * metrics::kBuckets, point.find(6)->second.bytes.size());
  EXPECT_EQ(8 * metrics::kBounds.size(), point.find(7)->second.bytes.size());
  EXPECT_EQ("http://a", attributes_of(point, 9).at("origin"));
}

class ASpanBuffer : public ::testing::Test {
 protected:
  ASpanBuffer() {
    exec::assume_on_loop();
    settings_.endpoint = "http://127.0.0.1:4318";
    settings_.buffer = 64 * config::kKiB;
  }
  std::uint64_t dropped() const { return metrics_.count(metrics::OtlpSpan::buffer_full); }

  metrics::Registry metrics_{1, 10};
  config::Otlp settings_;
};

TEST_F(ASpanBuffer, DropsAndCountsWhatDoesNotFit) {
  exec::assume_on_loop();
  SpanBuffer buffer(0, metrics_, settings_);
  std::uint64_t added = 0;
  for (; dropped() == 0; ++added) buffer.add(full_span());
  const SpanBuffer::Batch batch = buffer.take();
  EXPECT_EQ(added - 1, batch.spans);
  EXPECT_EQ(batch.spans, fields_of(batch.bytes).count(2));
  EXPECT_LE(batch.bytes.size(), settings_.buffer);
  EXPECT_GT(batch.bytes.size(), settings_.buffer - otlp::kMaxSpan - 1000);
  buffer.add(full_span());
  EXPECT_EQ(1U, dropped()) << "there is room again";
  EXPECT_EQ(1U, buffer.take().spans);
}

TEST_F(ASpanBuffer, UsesABufferAgainThatWasGivenBack) {
  exec::assume_on_loop();
  SpanBuffer buffer(0, metrics_, settings_);
  buffer.add(full_span());
  SpanBuffer::Batch first = buffer.take();
  const char* memory = first.bytes.data();
  buffer.give_back(std::move(first.bytes));
  static_cast<void>(buffer.take());
  buffer.add(full_span());
  EXPECT_EQ(memory, buffer.take().bytes.data());
}

TEST_F(ASpanBuffer, FollowsAReload) {
  exec::assume_on_loop();
  SpanBuffer buffer(0, metrics_, {});
  EXPECT_FALSE(buffer.on());
  EXPECT_FALSE(buffer.begins_trace());
  settings_.sample = 1;
  buffer.follow(settings_);
  EXPECT_TRUE(buffer.on());
  EXPECT_TRUE(buffer.begins_trace());
  buffer.add(full_span());
  settings_.traces = false;
  buffer.follow(settings_);
  EXPECT_FALSE(buffer.on());
  EXPECT_EQ(1U, buffer.take().spans) << "those of before are not lost";
}

TEST_F(ASpanBuffer, SamplesOneRequestInSoMany) {
  exec::assume_on_loop();
  settings_.sample = 10;
  SpanBuffer buffer(0, metrics_, settings_);
  int begun = 0;
  for (int i = 0; i < 10'000; ++i) begun += buffer.begins_trace() ? 1 : 0;
  EXPECT_GT(begun, 800);
  EXPECT_LT(begun, 1200);
  EXPECT_NE(buffer.next_id(), buffer.next_id());
  EXPECT_NE(0U, buffer.next_id());
}

}  // namespace
}  // namespace carpool::proxy
