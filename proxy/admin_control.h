// HouseControl: what the admin endpoint may change in the house. Lives on the admin thread; orders to loops go by mail.
#pragma once

#include "proxy/admin/control.h"

namespace carpool::proxy {

class House;

class HouseControl final : public admin::AdminControl {
 public:
  explicit HouseControl(House& house) : house_(house) {}

  admin::LogLevels log_levels() const override;
  std::unique_ptr<admin::PendingAnswer> order(const std::string& origin, admin::PoolOrder order) override;
  Status set_log_level(std::string_view module, std::string_view level) override;
  bool quit() override;
  std::unique_ptr<admin::PendingAnswer> reload(bool dry_run) override;
  Result<std::unique_ptr<admin::PendingAnswer>> warm_up(const pool::Origin& origin, std::uint32_t size) override;

 private:
  House& house_;
};

}  // namespace carpool::proxy
