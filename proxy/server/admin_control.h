// ServerAdminControl: the changes that the admin endpoint may make to the server. Lives on the admin thread; commands
// to loops are posted.
#pragma once

#include "exec/loop.h"
#include "proxy/net/egress_policy.h"
#include "proxy/server/admin/control.h"

namespace carpool::proxy {

class Drain;
class OriginRegistry;
class Reloader;
class WarmUp;

class ServerAdminControl final : public admin::AdminControl {
 public:
  struct Parts {
    exec::Loop& first_loop;  // the loop of the drain and the warm-up
    OriginRegistry& origins;
    const net::EgressPolicy& policy;
    Drain& drain;
    WarmUp& warm_up;
    const std::unique_ptr<Reloader>& reloader;  // created later
  };
  explicit ServerAdminControl(const Parts& parts) : parts_(parts) {}

  admin::LogLevels log_levels() const override;
  std::unique_ptr<admin::PendingResponse> apply(const std::string& origin, admin::PoolCommand command) override;
  Status set_log_level(std::string_view module, std::string_view level) override;
  bool quit() override;
  std::unique_ptr<admin::PendingResponse> reload(bool dry_run) override;
  Result<std::unique_ptr<admin::PendingResponse>> warm_up(const pool::Origin& origin, std::uint32_t size) override;
  void loops_ended() override { loops_ended_ = true; }

 private:
  const Parts parts_;
  bool loops_ended_ = false;
};

}  // namespace carpool::proxy
