// Shared by tests of the admin endpoint: a program that consists of data only, and the whole body of a response.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/registry.h"
#include "proxy/server/admin/control.h"
#include "proxy/server/admin/handlers/pool_commands.h"
#include "proxy/server/admin/handlers/reload.h"
#include "proxy/server/admin/handlers/warm_up.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

// With all its pieces in its body.
inline Response whole(Response response) {
  if (!response.pieces) return response;
  while (response.pieces->next(response.body)) {
  }
  response.pieces.reset();
  return response;
}

template <class Enum>
constexpr std::size_t at(Enum value) {
  return static_cast<std::size_t>(value);
}

class FakeView final : public AdminView {
 public:
  FakeView() : registry_(1, 10) {
    PoolInfo info;
    info.origin = "http://a.example";
    auto& s = info.snapshot;
    s.opened[at(pool::OpenCause::first)] = 1;
    s.opened[at(pool::OpenCause::all_busy)] = 5;
    s.closed[at(pool::CloseCause::error)] = 1;
    s.closed[at(pool::CloseCause::idle)] = 1;
    s.connections[at(pool::ConnectionStatus::idle)] = 2;
    s.connections[at(pool::ConnectionStatus::borrowed)] = 1;
    s.connections[at(pool::ConnectionStatus::connecting)] = 1;
    s.failures[at(pool::FailureReason::refused)] = 1;
    s.borrows = 100;
    s.restores = 99;
    s.created = 4;
    s.waiting = 2;
    s.max_wait = std::chrono::milliseconds(250);
    s.size = 64;
    s.peak = 4;
    list.push_back(info);
    info.origin = "https://<b>.example:8443";
    list.push_back(info);
    registry_.add_origin("http://a.example");
    registry_.record_request(0, registry_.slot_of("http://a.example"), {"GET", 200, std::chrono::milliseconds(1), {}});
  }

  std::vector<PoolInfo> pools() const override { return list; }
  TrafficInfo traffic(const std::string& origin) const override {
    const auto found = counts.find(origin);
    return found == counts.end() ? TrafficInfo{} : found->second;
  }
  TrafficInfo total_traffic() const override {
    TrafficInfo total;
    for (const auto& [origin, one] : counts) {
      total.requests += one.requests;
      total.failed += one.failed;
      for (std::size_t i = 0; i < total.times.size(); ++i) total.times[i] += one.times[i];
    }
    return total;
  }
  const History* history() const override { return kept; }
  std::vector<ConnectionInfo> connections(const std::string& origin) const override {
    if (std::none_of(list.begin(), list.end(), [&](const PoolInfo& pool) { return pool.origin == origin; })) return {};
    ConnectionInfo info;
    info.id = 42;
    info.state = pool::ConnectionStatus::borrowed;
    info.age = std::chrono::milliseconds(1500);
    info.uses = 9;
    info.protocol = "h1";
    info.peer = "10.0.0.1:80";
    return {info};
  }
  void name_borrowers(const std::string& origin, std::vector<ConnectionInfo>& connections) const override {
    for (ConnectionInfo& info : connections) info.borrower = "GET /x of 127.0.0.1:5000 to " + origin;
  }
  std::optional<PoolAnalysis> study(const std::string&) const override { return past; }
  std::vector<LeakRecord> leaks() const override { return lost; }
  const metrics::Registry* registry() const override { return metrics_on ? &registry_ : nullptr; }
  std::optional<metrics::ExecSample> exec() const override { return std::nullopt; }
  ThreadsInfo threads() const override { return threads_; }
  ThreadsInfo threads_;
  std::uint64_t log_dropped() const override { return 3; }
  metrics::BuildSample build() const override { return {"0.1.0", "g++", "Release"}; }
  OverloadInfo overload() const override { return shedding; }
  metrics::AdminSample admin() const override { return {3, 1, 2, 0, 0, {}, {}, {}, {}}; }
  std::vector<std::string> not_ready() const override { return reasons; }
  std::vector<std::string> warm_ups_failed() const override { return cold; }
  std::vector<std::string> paused() const override { return stopped; }
  std::optional<PoolInfo> declared(const std::string& origin) const override {
    if (origin != "https://declared.example") return std::nullopt;
    PoolInfo info;
    info.origin = origin;
    return info;
  }
  std::string config(ConfigFormat format) const override {
    return format == ConfigFormat::json ? "{\"workers\": 1}\n" : "workers = 1\n";
  }

  std::vector<PoolInfo> list;
  std::map<std::string, TrafficInfo> counts;
  const History* kept = nullptr;
  PoolAnalysis past;
  std::vector<LeakRecord> lost;
  bool metrics_on = true;
  OverloadInfo shedding{"keep_alive", 1, {850, 1000}, {20, 0}};
  std::vector<std::string> reasons, cold, stopped;

 private:
  metrics::Registry registry_;
};

class FakeControl final : public AdminControl {
 public:
  LogLevels log_levels() const override { return levels; }
  Status set_log_level(std::string_view module, std::string_view level) override {
    if (level == "loud") return Fault{FaultKind::malformed_request, Side::client, "level must be a level"};
    if (module.empty()) {
      levels.level = level;
    } else {
      levels.modules.emplace_back(module, level);
    }
    return Done{};
  }
  bool quit() override { return quits++ == 0; }
  std::unique_ptr<PendingResponse> reload(bool dry_run) override {
    class Read final : public PendingResponse {
     public:
      explicit Read(ReloadReport report) : report_(std::move(report)) {}
      std::optional<Response> poll_pending() override { return reload_response(report_); }

     private:
      const ReloadReport report_;
    };
    dry_runs += dry_run ? 1 : 0;
    return std::make_unique<Read>(report);
  }
  std::unique_ptr<PendingResponse> apply(const std::string&, PoolCommand command) override {
    class Given final : public PendingResponse {
     public:
      explicit Given(PoolCommand given) : command_(given) {}
      std::optional<Response> poll_pending() override { return pool_command_response(command_); }

     private:
      const PoolCommand command_;
    };
    commands.push_back(command.action);
    lasts = command.lasts;
    return std::make_unique<Given>(command);
  }
  std::vector<PoolAction> commands;
  std::optional<Duration> lasts;  // of the last one
  Result<std::unique_ptr<PendingResponse>> warm_up(const pool::Origin& origin, std::uint32_t size) override {
    if (origin.host == "denied") return Fault{FaultKind::egress_denied, Side::client, "egress says no"};
    class Soon final : public PendingResponse {
     public:
      explicit Soon(std::uint32_t made) : made_(made) {}
      std::optional<Response> poll_pending() override {
        if (looks_++ == 0) return std::nullopt;
        if (made_ == 7) return warm_up_response(3, "connection refused");
        return warm_up_response(made_, std::nullopt);
      }

     private:
      const std::uint32_t made_;
      int looks_ = 0;
    };
    return std::unique_ptr<PendingResponse>(std::make_unique<Soon>(size));
  }

  LogLevels levels{"info", {}};
  int quits = 0, dry_runs = 0;
  ReloadReport report;
};

}  // namespace carpool::proxy::admin
