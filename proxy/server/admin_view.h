// ServerAdminView: the state of the server that the admin endpoint may read. Any thread.
#pragma once

#include "proxy/server/admin/view.h"
#include "proxy/server/workers.h"

namespace carpool::proxy {

class AdminServer;
class CertificateEnds;
class ConfigInForce;
class Drain;
class Executors;
class HeapTrim;
class InterceptLeaves;
class LeakLog;
class OriginRegistry;
class OverloadState;
class Reloader;
class UntrackedWatch;
class WarmUp;

class ServerAdminView final : public admin::AdminView {
 public:
  struct Parts {
    const ConfigInForce& config;
    const metrics::Registry& metrics;
    OriginRegistry& origins;
    const Workers& workers;
    LeakLog& leaks;
    const OverloadState& overload;
    const InterceptLeaves& intercept_leaves;
    // Created later; null until then.
    const std::unique_ptr<Executors>& executors;
    const CertificateEnds& certificates;
    const std::unique_ptr<HeapTrim>& heap_trim;
    const std::unique_ptr<UntrackedWatch>& untracked;
    const std::unique_ptr<AdminServer>& admin;
    const std::unique_ptr<Reloader>& reloader;
    const std::unique_ptr<Drain>& drain;
    const std::unique_ptr<WarmUp>& warm_up;
  };
  explicit ServerAdminView(const Parts& parts) : parts_(parts) {}

  std::vector<admin::PoolInfo> pools() const override;
  admin::CountedPools counted() const override;
  std::vector<admin::OriginInfo> origins() const override;
  admin::TrafficInfo traffic(const std::string& origin) const override;
  admin::TrafficInfo total_traffic() const override;
  std::vector<admin::ConnectionInfo> connections(const std::string& origin) const override;
  std::vector<admin::AddressInfo> addresses(const std::string& origin) const override;
  void name_borrowers(const std::string& origin, std::vector<admin::ConnectionInfo>& connections) const override;
  std::optional<admin::PoolAnalysis> study(const std::string& origin) const override;
  const admin::History* history() const override;
  std::vector<LeakRecord> leaks() const override;
  const metrics::Registry* registry() const override;
  std::optional<metrics::ExecSample> exec() const override;
  admin::ThreadsInfo threads() const override;
  std::uint64_t log_dropped() const override;
  metrics::BuildSample build() const override;
  admin::OverloadInfo overload() const override;
  std::vector<metrics::CertificateSample> certificates() const override;
  metrics::AdminSample admin() const override;
  std::optional<metrics::InterceptSample> intercept() const override;
  std::vector<std::string> not_ready() const override;
  std::vector<std::string> warm_ups_failed() const override;
  std::vector<std::string> paused() const override;
  std::optional<admin::PoolInfo> declared(const std::string& origin) const override;
  std::string config(admin::ConfigFormat format) const override;

 private:
  std::vector<admin::PoolInfo> snapshots()
      const;  // pools() without the loops' own counters, which would require all their shards
  const Parts parts_;
};

}  // namespace carpool::proxy
