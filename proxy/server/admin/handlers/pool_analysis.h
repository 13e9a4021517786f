// PoolAnalysis: the input of explain, advice and what-if for one pool.
#pragma once

#include <optional>
#include <vector>

#include "metrics/sample.h"
#include "pool/directory/explain.h"
#include "pool/policy/borrow_history.h"
#include "proxy/server/admin/credentials_state.h"

namespace carpool::proxy::admin {

struct PoolAnalysis {
  pool::Limits limits;  // in force
  pool::ExplainSettings explain_settings;
  Duration wait_timeout{};
  std::vector<pool::BorrowRecord> past;
  std::vector<metrics::Labelled> intercepts;  // CONNECTs by result, without zeros
  std::vector<metrics::RefusalSample> refusals;
  std::optional<CredentialsState> credentials;  // absent if the origin has none
};

}  // namespace carpool::proxy::admin
