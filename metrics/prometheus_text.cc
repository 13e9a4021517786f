#include "metrics/prometheus_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "base/assert.h"

namespace carpool::metrics {
namespace {

constexpr double kWhole = 1e15;  // below it, %.16g writes whole numbers without an exponent, and they fit

template <class... Format>
void append_chars(std::string& out, Format... value) {
  std::array<char, 32> text{};
  const std::to_chars_result end = std::to_chars(text.data(), text.data() + text.size(), value...);
  CARPOOL_ASSERT(end.ec == std::errc());
  out.append(text.data(), end.ptr);
}

// Formats as printf's %.16g.
void append_number(std::string& out, double value) {
  if (std::isnan(value)) {
    out.append("Nan");
  } else if (std::isinf(value)) {
    out.append(value < 0 ? "-Inf" : "+Inf");
  } else if (std::fabs(value) < kWhole && value == std::trunc(value) && !(value == 0 && std::signbit(value))) {
    append_chars(out, static_cast<std::int64_t>(value));
  } else {
    append_chars(out, value, std::chars_format::general, std::numeric_limits<double>::max_digits10 - 1);
  }
}

void append_escaped(std::string& out, std::string_view value) {
  for (const char c : value) {
    if (c == '\n') {
      out.append("\\n");
    } else {
      if (c == '\\' || c == '"') out.push_back('\\');
      out.push_back(c);
    }
  }
}

std::string_view word(prometheus::MetricType type) {
  switch (type) {
    case prometheus::MetricType::Counter:
      return "counter";
    case prometheus::MetricType::Gauge:
      return "gauge";
    default:
      CARPOOL_ASSERT(type == prometheus::MetricType::Histogram);  // the catalog has no other type
      return "histogram";
  }
}

// The samples of one family.
class Lines {
 public:
  Lines(std::string& out, const prometheus::MetricFamily& family) : out_(out), family_(family) {}

  void write() {
    for (const auto& metric : family_.metric) {
      switch (family_.type) {
        case prometheus::MetricType::Counter:
          one(metric, metric.counter.value);
          break;
        case prometheus::MetricType::Gauge:
          one(metric, metric.gauge.value);
          break;
        default:
          histogram(metric);
      }
    }
  }

 private:
  void set_labels(const prometheus::ClientMetric& metric) {
    labels_.clear();
    for (const auto& label : metric.label) {
      if (!labels_.empty()) labels_.push_back(',');
      labels_.append(label.name).append("=\"");
      append_escaped(labels_, label.value);
      labels_.push_back('"');
    }
  }
  void head(std::string_view suffix) {
    out_.append(family_.name).append(suffix);
    if (!labels_.empty()) out_.append("{").append(labels_).append("}");
    out_.push_back(' ');
  }
  void one(const prometheus::ClientMetric& metric, double value) {
    set_labels(metric);
    head("");
    append_number(out_, value);
    out_.push_back('\n');
  }
  void histogram(const prometheus::ClientMetric& metric) {
    set_labels(metric);
    head("_count");
    append_chars(out_, metric.histogram.sample_count);
    out_.push_back('\n');
    head("_sum");
    append_number(out_, metric.histogram.sample_sum);
    out_.push_back('\n');
    double last = 0;
    for (std::size_t i = 0; i < metric.histogram.bucket.size(); ++i) {
      last = metric.histogram.bucket[i].upper_bound;
      bucket(bound(i, last), metric.histogram.bucket[i].cumulative_count);
    }
    if (!std::isinf(last)) bucket("+Inf", metric.histogram.sample_count);
  }
  void bucket(std::string_view bound, std::uint64_t count) {
    out_.append(family_.name).append("_bucket{").append(labels_).append(labels_.empty() ? "le=\"" : ",le=\"");
    out_.append(bound).append("\"} ");
    append_chars(out_, count);
    out_.push_back('\n');
  }
  // All histograms of a family have the same bounds: each is formatted once.
  const std::string& bound(std::size_t i, double value) {
    if (i >= bounds_.size()) bounds_.resize(i + 1, {std::numeric_limits<double>::quiet_NaN(), {}});
    auto& [known, text] = bounds_[i];
    if (known != value) {
      known = value;
      text.clear();
      append_number(text, value);
    }
    return text;
  }

  std::string& out_;
  const prometheus::MetricFamily& family_;
  std::string labels_;
  std::vector<std::pair<double, std::string>> bounds_;
};

}  // namespace

void append_heading(std::string& out, const prometheus::MetricFamily& family) {
  if (!family.help.empty()) out.append("# HELP ").append(family.name).append(" ").append(family.help).append("\n");
  out.append("# TYPE ").append(family.name).append(" ").append(word(family.type)).append("\n");
}

void append_samples(std::string& out, const prometheus::MetricFamily& family) {
  Lines(out, family).write();
}

}  // namespace carpool::metrics
