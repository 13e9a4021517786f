// Renders pools and connections as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "proxy/server/admin/response.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

Response pools_response(std::vector<PoolInfo> pools);
// Includes live histograms of the connections' ages, idle times and uses.
Response pool_response(const PoolInfo& pool, const std::vector<ConnectionInfo>& connections,
                       const std::vector<AddressInfo>& addresses);
Response connections_response(std::vector<ConnectionInfo> connections);
// SimplePool's counters per URI; the format is fixed by a golden file.
Response pool_metrics_response(const CountedPools& counted);

// Returns the name of the i-th priority class.
std::string class_name(const PoolInfo& pool, std::size_t i);

}  // namespace carpool::proxy::admin
