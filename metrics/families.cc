#include "metrics/families.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "metrics/point_merger.h"

namespace carpool::metrics {

// The source of a metric's points.
struct Source {
  const Metric* metric;
  std::variant<Families::OfOrigin, Families::OfShard, Families::OfProgram> of;
};

namespace {

// The values of an origin that are exported even if they are zero, because rules divide by them or graphs show them.
// Other zeros are omitted: the series of many rarely used origins would add up.
constexpr std::array<std::string_view, 2> kHeldStates{"idle", "borrowed"};
constexpr std::array<std::string_view, 1> kUsable{"usable"};
constexpr std::array<std::string_view, 0> kNone{};

constexpr std::size_t kPart = 256;  // lines of text, approximately: some 20 KiB

// ---- from a pool's snapshot ----
template <auto Member>
void number(PointMerger& points, const OriginSample& origin) {
  points.add({}, origin.*Member);
}
template <auto Member>
void rare(PointMerger& points, const OriginSample& origin) {
  if (origin.*Member != 0) points.add({}, origin.*Member);
}
template <auto Member, const auto& always>
void parts(PointMerger& points, const OriginSample& origin) {
  for (const Labelled& part : origin.*Member) {
    const bool sent = part.value != 0 || std::find(always.begin(), always.end(), part.label) != always.end();
    if (sent) points.add({part.label}, part.value);
  }
}
template <auto Member>
void classes(PointMerger& points, const OriginSample& origin) {
  for (const ClassSample& one : origin.classes) points.add({one.name}, one.*Member);
}

template <auto Member>
void addresses(PointMerger& points, const OriginSample& origin) {
  for (const AddressSample& one : origin.each_address) points.add({one.address}, one.*Member);
}
void response_times(PointMerger& points, const OriginSample& origin) {
  for (const AddressSample& one : origin.each_address) {
    if (one.response_nanoseconds != 0) points.add_seconds({one.address}, one.response_nanoseconds);
  }
}

// ---- from a loop's counts for an origin ----
std::string code_label(std::uint16_t code) {
  if (code == kNoCode) return "none";
  if (code == kOtherCode) return "other";
  return std::to_string(code);
}
void requests(PointMerger& points, const OriginShard& shard) {
  shard.requests.for_each([&](MethodId method, std::uint16_t code, std::uint64_t count) {
    points.add({kMethods[method], code_label(code)}, count);
  });
}
template <auto Member>
void histogram(PointMerger& points, const OriginShard& shard) {
  points.add((shard.*Member).read());
}
template <auto Member>
void cell(PointMerger& points, const OriginShard& shard) {
  if (const std::uint64_t count = (shard.*Member).read(); count != 0) points.add({}, count);
}
template <auto Member>
void seconds(PointMerger& points, const OriginShard& shard) {
  if (const std::uint64_t spent = (shard.*Member).read(); spent != 0) points.add_seconds({}, spent);
}
template <auto Member, const auto& names>
void cells(PointMerger& points, const OriginShard& shard) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (const std::uint64_t count = (shard.*Member)[i].read(); count != 0) points.add({names[i]}, count);
  }
}

// ---- from the process ----
template <auto Member>
void total(PointMerger& points, const Registry&, const Sample& sample) {
  points.set({}, static_cast<double>(sample.*Member));
}
void clients(PointMerger& points, const Registry& registry, const Sample&) {
  points.set({}, static_cast<double>(registry.client_count()));
}
void stale_credentials(PointMerger& points, const Registry& registry, const Sample&) {
  points.set({}, static_cast<double>(registry.stale_credentials()));
}
template <auto Count, const auto& names>
void counts(PointMerger& points, const Registry& registry, const Sample&) {
  for (std::size_t i = 0; i < names.size(); ++i) points.add({names[i]}, (registry.*Count)(i));
}
void otlp_requests(PointMerger& points, const Registry& registry, const Sample&) {
  registry.for_each_otlp_request([&](auto signal, auto end, auto count) { points.add({signal, end}, count); });
}
template <auto Member>
void exec_parts(PointMerger& points, const Registry&, const Sample& sample) {
  if (sample.exec) points.add_all((*sample.exec).*Member);
}
template <auto Member>
void exec_number(PointMerger& points, const Registry&, const Sample& sample) {
  if (sample.exec) points.set({}, static_cast<double>((*sample.exec).*Member));
}
void queue_wait(PointMerger& points, const Registry&, const Sample& sample) {
  if (sample.exec) points.add(sample.exec->queue_wait);
}
template <auto Member>
void loop_times(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.exec) return;
  for (const LoopSample& loop : sample.exec->loops) points.add(loop.*Member);
}
void loop_busy(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.exec) return;
  for (std::size_t i = 0; i < sample.exec->loops.size(); ++i) {
    points.add_seconds({std::to_string(i)}, sample.exec->loops[i].turns.nanoseconds);
  }
}
template <auto Member>
void sample_parts(PointMerger& points, const Registry&, const Sample& sample) {
  points.add_all(sample.*Member);
}
void overload_stage(PointMerger& points, const Registry&, const Sample& sample) {
  if (sample.overload) points.set({}, static_cast<double>(sample.overload->stage));
}
void overload_used(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.overload) return;
  points.set({"memory"}, sample.overload->memory_ratio);
  points.set({"descriptors"}, sample.overload->descriptor_ratio);
}
void reserve_taken(PointMerger& points, const Registry&, const Sample& sample) {
  if (sample.overload) points.add({}, sample.overload->failed_allocations);
}
void memory_returned(PointMerger& points, const Registry&, const Sample& sample) {
  if (sample.overload) points.add({}, sample.overload->memory_returned);
}
void reloads(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.admin) return;
  points.add({"applied"}, sample.admin->reloads_applied);
  points.add({"refused"}, sample.admin->reloads_refused);
}
void certificate_ends(PointMerger& points, const Registry&, const Sample& sample) {
  for (const CertificateSample& one : sample.certificates) points.set({one.use, one.file}, one.end);
}
void reload_limits(PointMerger& points, const Registry&, const Sample& sample) {
  if (sample.admin) points.add_all(sample.admin->reload_limits);
}
void intercept_refusals(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.intercept) return;
  for (const RefusalSample& one : sample.intercept->refusals) {
    points.add({one.origin, one.offer, one.alert}, one.refusals);
  }
}
void intercept_leaves(PointMerger& points, const Registry&, const Sample& sample) {
  if (sample.intercept) points.set({}, static_cast<double>(sample.intercept->leaves));
}
void intercept_minted(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.intercept) return;
  points.add({"minted"}, sample.intercept->minted);
  points.add({"failed"}, sample.intercept->failed);
}
void intercept_expiry(PointMerger& points, const Registry&, const Sample& sample) {
  if (sample.intercept && sample.intercept->authority_seconds) points.set({}, *sample.intercept->authority_seconds);
}
void admin_connections(PointMerger& points, const Registry&, const Sample& sample) {
  if (sample.admin) points.set({}, static_cast<double>(sample.admin->connections));
}
void admin_shed(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.admin) return;
  for (const AdminSample::Listener& listener : sample.admin->listeners) {
    points.add({listener.name, "idle"}, listener.ended_for_others);
    points.add({listener.name, "busy"}, listener.refused);
  }
}
void admin_abuse(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.admin) return;
  for (const auto& [listener, kind, count] : sample.admin->abuses) points.add({listener, kind}, count);
}
void admin_handshakes(PointMerger& points, const Registry&, const Sample& sample) {
  if (!sample.admin) return;
  for (const auto& [result, count] : sample.admin->handshakes) points.add({result}, count);
}
void build(PointMerger& points, const Registry&, const Sample& sample) {
  points.set({sample.build.version, sample.build.compiler, sample.build.build}, 1);
}
template <auto Member>
void process(PointMerger& points, const Registry&, const Sample& sample) {
  if (sample.process) points.set({}, static_cast<double>((*sample.process).*Member));
}

// In the order of the catalog.
constexpr std::array<Source, kCatalog.size()> kSources{{
    {&catalog::kBorrows, number<&OriginSample::borrows>},
    {&catalog::kRestores, number<&OriginSample::restores>},
    {&catalog::kOpened, parts<&OriginSample::opened, kNone>},
    {&catalog::kClosed, parts<&OriginSample::closed, kNone>},
    {&catalog::kFailures, parts<&OriginSample::failures, kNone>},
    {&catalog::kConnections, parts<&OriginSample::connections, kHeldStates>},
    {&catalog::kConnectionsPeak, number<&OriginSample::peak>},
    {&catalog::kSize, number<&OriginSample::size>},
    {&catalog::kSizeChanges, parts<&OriginSample::size_changes, kNone>},
    {&catalog::kWaiting, number<&OriginSample::waiting>},
    {&catalog::kClassWaiting, classes<&ClassSample::waiting>},
    {&catalog::kClassLeases, classes<&ClassSample::leases>},
    {&catalog::kClassLimit, classes<&ClassSample::limit>},
    {&catalog::kClassShare, classes<&ClassSample::limit>},
    {&catalog::kProbing, rare<&OriginSample::probing>},
    {&catalog::kPaused, rare<&OriginSample::paused>},
    {&catalog::kCoolingDown, rare<&OriginSample::cooling_down>},
    {&catalog::kCoolDowns, rare<&OriginSample::cool_downs>},
    {&catalog::kUndialed, rare<&OriginSample::undialed>},
    {&catalog::kOrigins, total<&Sample::pools>},
    {&catalog::kOriginsMax, total<&Sample::pools_max>},
    {&catalog::kReclaimed, total<&Sample::pools_reclaimed>},
    {&catalog::kEvicted, total<&Sample::pools_evicted>},
    {&catalog::kStarved, total<&Sample::pools_starved>},
    {&catalog::kWaitSeconds, histogram<&OriginShard::wait>},
    {&catalog::kLeaks, number<&OriginSample::leaks>},
    {&catalog::kUntracked, total<&Sample::untracked>},
    {&catalog::kAddresses, parts<&OriginSample::addresses, kUsable>},
    {&catalog::kAddressConnections, addresses<&AddressSample::connections>},
    {&catalog::kAddressLeases, addresses<&AddressSample::leases>},
    {&catalog::kAddressRequests, addresses<&AddressSample::requests>},
    {&catalog::kAddressResponse, response_times},
    {&catalog::kEjections, cell<&OriginShard::ejections>},
    {&catalog::kSavedDials, cell<&OriginShard::saved_dials>},
    {&catalog::kSavedSeconds, seconds<&OriginShard::saved_nanoseconds>},
    {&catalog::kSavedCpu, seconds<&OriginShard::saved_cpu_nanoseconds>},
    {&catalog::kRequests, requests},
    {&catalog::kRequestSeconds, histogram<&OriginShard::request>},
    {&catalog::kRetries, cells<&OriginShard::retries, kRetryReasons>},
    {&catalog::kRetriesDenied, cell<&OriginShard::retries_denied>},
    {&catalog::kHedgedAttempts, cells<&OriginShard::hedges, kHedges>},
    {&catalog::kBounds, cells<&OriginShard::bounds, kUpstreamBounds>},
    {&catalog::kRateLimited, cells<&OriginShard::limited, kLimits>},
    {&catalog::kDownstream, clients},
    {&catalog::kGivenUp, counts<&Registry::given_up_count, kGivenUps>},
    {&catalog::kH2Abuse, counts<&Registry::abuse_count, kAbuses>},
    {&catalog::kClientHandshakes, counts<&Registry::client_handshake_count, kClientHandshakes>},
    {&catalog::kTlsFloods, counts<&Registry::tls_flood_count, kTlsPeers>},
    {&catalog::kParentRefusals, counts<&Registry::parent_refusal_count, kParentRefusals>},
    {&catalog::kProxyHeaders, counts<&Registry::proxy_header_count, kProxyHeaders>},
    {&catalog::kAuthentications, counts<&Registry::authentication_count, kAuthentications>},
    {&catalog::kRefused, cell<&OriginShard::refused>},
    {&catalog::kCredentialFiles, counts<&Registry::credential_file_count, kCredentialFiles>},
    {&catalog::kStaleCredentials, stale_credentials},
    {&catalog::kTokenRequests, cells<&OriginShard::token_requests, kTokenRequests>},
    {&catalog::kOtlpSpans, counts<&Registry::otlp_span_count, kOtlpSpans>},
    {&catalog::kOtlpRequests, otlp_requests},
    {&catalog::kInterceptConnects, cells<&OriginShard::intercepts, kIntercepts>},
    {&catalog::kInterceptRefusals, intercept_refusals},
    {&catalog::kInterceptLeaves, intercept_leaves},
    {&catalog::kInterceptMinted, intercept_minted},
    {&catalog::kInterceptExpiry, intercept_expiry},
    {&catalog::kHandshake, histogram<&OriginShard::handshake>},
    {&catalog::kResets, cells<&OriginShard::resets, kResets>},
    {&catalog::kEgress, counts<&Registry::egress_count, kEgress>},
    {&catalog::kDns, counts<&Registry::dns_count, kDns>},
    {&catalog::kTasks, exec_parts<&ExecSample::tasks>},
    {&catalog::kHandovers, exec_parts<&ExecSample::handovers>},
    {&catalog::kHandoversPaused, exec_number<&ExecSample::handovers_paused>},
    {&catalog::kThreads, exec_parts<&ExecSample::threads>},
    {&catalog::kThreadsMax, exec_number<&ExecSample::threads_max>},
    {&catalog::kLowOnThreads, exec_number<&ExecSample::low_on_threads>},
    {&catalog::kQueue, exec_number<&ExecSample::queue>},
    {&catalog::kQueueWait, queue_wait},
    {&catalog::kLoopTurns, loop_times<&LoopSample::turns>},
    {&catalog::kLoopDelays, loop_times<&LoopSample::delays>},
    {&catalog::kLoopBusy, loop_busy},
    {&catalog::kReviews, sample_parts<&Sample::reviews>},
    {&catalog::kWebhookShed, sample_parts<&Sample::webhook_shed>},
    {&catalog::kWebhookLimits, sample_parts<&Sample::webhook_limits>},
    {&catalog::kOverloadStage, overload_stage},
    {&catalog::kOverloadUsed, overload_used},
    {&catalog::kOverloadShed, counts<&Registry::shed_count, kSheds>},
    {&catalog::kReserveTaken, reserve_taken},
    {&catalog::kMemoryReturned, memory_returned},
    {&catalog::kReloads, reloads},
    {&catalog::kCertificateEnd, certificate_ends},
    {&catalog::kReloadLimits, reload_limits},
    {&catalog::kAdminConnections, admin_connections},
    {&catalog::kAdminShed, admin_shed},
    {&catalog::kAdminAbuse, admin_abuse},
    {&catalog::kAdminHandshakes, admin_handshakes},
    {&catalog::kLogDropped, total<&Sample::log_dropped>},
    {&catalog::kBuildInfo, build},
    {&catalog::kCpu, process<&ProcessSample::cpu_seconds>},
    {&catalog::kResident, process<&ProcessSample::resident_bytes>},
    {&catalog::kVirtual, process<&ProcessSample::virtual_bytes>},
    {&catalog::kOpenFds, process<&ProcessSample::open_fds>},
    {&catalog::kMaxFds, process<&ProcessSample::max_fds>},
    {&catalog::kStartTime, process<&ProcessSample::start_time_seconds>},
}};
static_assert(std::equal(kSources.begin(), kSources.end(), kCatalog.begin(),
                         [](const Source& source, const Metric* metric) { return source.metric == metric; }));

bool full(const Family& family) {
  const std::size_t lines = family.metric->type == Type::histogram ? kBuckets + 2 : 1;
  return family.points.size() * lines >= kPart;
}

}  // namespace

// Origins beyond max_origins share a label, and so do pools of one origin whose TLS identity a reload changed.
Families::Families(const Registry& registry, Sample sample) : registry_(registry), sample_(std::move(sample)) {
  for (OriginSample& origin : sample_.origins) {
    if (registry.slot_of(origin.label) != kOtherOrigin) continue;
    origin.label = "other";
    origin.each_address.clear();  // their number would have no limit
  }
  std::stable_sort(sample_.origins.begin(), sample_.origins.end(),
                   [](const OriginSample& a, const OriginSample& b) { return a.label < b.label; });
}

bool Families::next(Family& family) {
  family.points.clear();
  while (metric_ < kSources.size() && family.points.empty()) {
    family.metric = kSources[metric_].metric;
    family.begins = begins_;
    const bool complete = std::visit([&](auto of) { return add(of, family); }, kSources[metric_].of);
    begins_ = complete || (begins_ && family.points.empty());
    if (!complete) continue;
    ++metric_;
    origin_ = 0;
  }
  return !family.points.empty();
}

bool Families::add(OfOrigin of, Family& family) {
  PointMerger points(family.points);
  const std::vector<OriginSample>& all = sample_.origins;
  while (origin_ < all.size() && !full(family)) {
    const std::string& label = all[origin_].label;
    points.begin(label);
    for (; origin_ < all.size() && all[origin_].label == label; ++origin_) of(points, all[origin_]);
  }
  return origin_ == all.size();
}

bool Families::add(OfShard of, Family& family) {
  PointMerger points(family.points);
  while (!full(family)) {
    const std::string* last = nullptr;
    const bool there = registry_.visit_origin(static_cast<OriginSlot>(origin_),
                                              [&](const std::string& label, const OriginShard& shard) {
                                                if (std::exchange(last, &label) == nullptr) points.begin(label);
                                                of(points, shard);
                                              });
    if (!there) return true;
    points.end();
    ++origin_;
  }
  return false;
}

bool Families::add(OfProgram of, Family& family) {
  PointMerger points(family.points);
  of(points, registry_, sample_);
  return true;
}

}  // namespace carpool::metrics
