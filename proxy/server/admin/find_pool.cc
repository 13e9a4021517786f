#include "proxy/server/admin/find_pool.h"

#include <utility>

namespace carpool::proxy::admin {

std::optional<PoolInfo> find_pool(const AdminView& view, const std::string& label) {
  for (PoolInfo& pool : view.pools()) {
    if (pool.origin == label) return std::move(pool);
  }
  return view.declared(label);
}

}  // namespace carpool::proxy::admin
