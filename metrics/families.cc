#include "metrics/families.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace carpool::metrics {
namespace {

using Labels = std::vector<std::string>;

// Points of each metric, added up by their labels. Those of one origin are added together, so that whoever has the same
// labels is among the last ones: a search through all of them was half of what a scrape cost.
class Book {
 public:
  void add(const Metric& metric, Labels labels, std::uint64_t value) {
    at(metric, std::move(labels)).value += static_cast<double>(value);
  }
  void add_seconds(const Metric& metric, Labels labels, std::uint64_t nanoseconds) {
    at(metric, std::move(labels)).value += static_cast<double>(nanoseconds) / 1e9;
  }
  void set(const Metric& metric, double value) { set(metric, {}, value); }
  void set(const Metric& metric, Labels labels, double value) { at(metric, std::move(labels)).value = value; }
  void add(const Metric& metric, Labels labels, const HistogramTotals& totals) {
    if (totals.count() == 0) return;
    std::unique_ptr<HistogramTotals>& sum = at(metric, std::move(labels)).histogram;
    if (!sum) sum = std::make_unique<HistogramTotals>();
    *sum += totals;
  }
  void add(const Metric& metric, const std::string& origin, const std::vector<Labelled>& parts, bool zeros) {
    for (const Labelled& part : parts) {
      if (part.value != 0 || zeros) add(metric, Labels{origin, std::string(part.label)}, part.value);
    }
  }
  void add(const Metric& metric, const std::vector<Labelled>& parts) {
    for (const Labelled& part : parts) add(metric, Labels{std::string(part.label)}, part.value);
  }

  std::vector<Family> families() && {
    std::vector<Family> all;
    for (const Metric* metric : kCatalog) {
      const auto found = values_.find(metric);
      if (found != values_.end()) all.push_back({metric, std::move(found->second)});
    }
    return all;
  }

 private:
  Point& at(const Metric& metric, Labels labels) {
    std::vector<Point>& points = values_[&metric];
    for (auto point = points.rbegin(); point != points.rend(); ++point) {
      if (point->labels == labels) return *point;
      if (labels.empty() || point->labels.front() != labels.front()) break;
    }
    return points.emplace_back(Point{std::move(labels), 0, nullptr});
  }
  std::unordered_map<const Metric*, std::vector<Point>> values_;
};

std::string code_label(std::uint16_t code) {
  if (code == kNoCode) return "none";
  if (code == kOtherCode) return "other";
  return std::to_string(code);
}

void add_shard(Book& book, const std::string& origin, const OriginShard& shard) {
  shard.requests.for_each([&](MethodId method, std::uint16_t code, std::uint64_t count) {
    book.add(catalog::kRequests, {origin, std::string(kMethods[method]), code_label(code)}, count);
  });
  book.add(catalog::kRequestSeconds, {origin}, shard.request.read());
  book.add(catalog::kWaitSeconds, {origin}, shard.wait.read());
  book.add(catalog::kHandshake, {origin}, shard.handshake.read());
  for (std::size_t i = 0; i < kProofs.size(); ++i) {
    book.add(catalog::kRetries, {origin, std::string(kProofs[i])}, shard.retries[i].read());
  }
  book.add(catalog::kSavedDials, {origin}, shard.saved_dials.read());
  book.add_seconds(catalog::kSavedSeconds, {origin}, shard.saved_nanoseconds.read());
  book.add_seconds(catalog::kSavedCpu, {origin}, shard.saved_cpu_nanoseconds.read());
  book.add(catalog::kRetriesDenied, {origin}, shard.retries_denied.read());
  book.add(catalog::kEjections, {origin}, shard.ejections.read());
  for (std::size_t i = 0; i < kLimits.size(); ++i) {
    if (const std::uint64_t count = shard.limited[i].read(); count != 0) {
      book.add(catalog::kRateLimited, {origin, std::string(kLimits[i])}, count);
    }
  }
  for (std::size_t i = 0; i < kResets.size(); ++i) {
    if (const std::uint64_t count = shard.resets[i].read(); count != 0) {
      book.add(catalog::kResets, {origin, std::string(kResets[i])}, count);
    }
  }
}

void add_origin(Book& book, const std::string& label, const OriginSample& origin) {
  book.add(catalog::kBorrows, {label}, origin.borrows);
  book.add(catalog::kRestores, {label}, origin.restores);
  book.add(catalog::kOpened, label, origin.opened, false);
  book.add(catalog::kClosed, label, origin.closed, false);
  book.add(catalog::kFailures, label, origin.failures, true);
  book.add(catalog::kConnections, label, origin.connections, true);
  book.add(catalog::kConnectionsPeak, {label}, origin.peak);
  book.add(catalog::kSize, {label}, origin.size);
  book.add(catalog::kWaiting, {label}, origin.waiting);
  book.add(catalog::kAddresses, label, origin.addresses, true);
  book.add(catalog::kLeaks, {label}, origin.leaks);
  for (const ClassSample& one : origin.classes) {
    book.add(catalog::kClassWaiting, {label, one.name}, one.waiting);
    book.add(catalog::kClassLeases, {label, one.name}, one.leases);
    book.add(catalog::kClassShare, {label, one.name}, one.share);
  }
}

// Those beyond max_origins share a label; so may pools of one origin, when a reload changed its TLS identity.
void add_origins(Book& book, const Registry& registry, const std::vector<OriginSample>& origins) {
  std::vector<std::pair<std::string, const OriginSample*>> by_label;
  by_label.reserve(origins.size());
  for (const OriginSample& origin : origins) {
    by_label.emplace_back(registry.slot_of(origin.label) == kOtherOrigin ? "other" : origin.label, &origin);
  }
  std::sort(by_label.begin(), by_label.end());
  for (const auto& [label, origin] : by_label) add_origin(book, label, *origin);
}

void add_exec(Book& book, const ExecSample& exec) {
  book.add(catalog::kTasks, exec.tasks);
  book.add(catalog::kHandovers, exec.handovers);
  book.add(catalog::kThreads, exec.threads);
  book.set(catalog::kThreadsMax, static_cast<double>(exec.threads_max));
  book.set(catalog::kLowOnThreads, exec.low_on_threads ? 1 : 0);
  book.set(catalog::kQueue, static_cast<double>(exec.queue));
  book.add(catalog::kQueueWait, {}, exec.queue_wait);
}

void add_overload(Book& book, const OverloadSample& overload) {
  book.set(catalog::kOverloadStage, static_cast<double>(overload.stage));
  book.set(catalog::kOverloadUsed, {"memory"}, overload.memory_ratio);
  book.set(catalog::kOverloadUsed, {"descriptors"}, overload.descriptor_ratio);
  book.add(catalog::kReserveTaken, {}, overload.failed_allocations);
}

void add_admin(Book& book, const AdminSample& admin) {
  book.add(catalog::kReloads, {"applied"}, admin.reloads_applied);
  book.add(catalog::kReloads, {"refused"}, admin.reloads_refused);
  book.set(catalog::kAdminConnections, static_cast<double>(admin.connections));
}

void add_process(Book& book, const ProcessSample& process) {
  book.set(catalog::kCpu, process.cpu_seconds);
  book.set(catalog::kResident, static_cast<double>(process.resident_bytes));
  book.set(catalog::kVirtual, static_cast<double>(process.virtual_bytes));
  book.set(catalog::kOpenFds, static_cast<double>(process.open_fds));
  book.set(catalog::kMaxFds, static_cast<double>(process.max_fds));
  book.set(catalog::kStartTime, process.start_time_seconds);
}

}  // namespace

std::vector<Family> families(const Registry& registry, const Sample& sample) {
  Book book;
  add_origins(book, registry, sample.origins);
  registry.for_each_shard([&](const std::string& label, const OriginShard& shard) { add_shard(book, label, shard); });
  book.set(catalog::kDownstream, static_cast<double>(registry.client_count()));
  for (std::size_t i = 0; i < kAbuses.size(); ++i) {
    book.add(catalog::kH2Abuse, {std::string(kAbuses[i])}, registry.abuse_count(i));
  }
  for (std::size_t i = 0; i < kSheds.size(); ++i) {
    book.add(catalog::kOverloadShed, {std::string(kSheds[i])}, registry.shed_count(i));
  }
  book.set(catalog::kOrigins, static_cast<double>(sample.pools));
  book.set(catalog::kOriginsMax, static_cast<double>(sample.pools_max));
  book.set(catalog::kReclaimed, static_cast<double>(sample.pools_reclaimed));
  if (sample.overload) add_overload(book, *sample.overload);
  if (sample.admin) add_admin(book, *sample.admin);
  for (std::size_t i = 0; i < kEgress.size(); ++i) {
    book.add(catalog::kEgress, {std::string(kEgress[i])}, registry.egress_count(i));
  }
  if (sample.exec) add_exec(book, *sample.exec);
  book.add(catalog::kReviews, sample.reviews);
  book.set(catalog::kLogDropped, static_cast<double>(sample.log_dropped));
  book.add(catalog::kBuildInfo, {sample.build.version, sample.build.compiler, sample.build.build}, 1);
  if (sample.process) add_process(book, *sample.process);
  return std::move(book).families();
}

}  // namespace carpool::metrics
