// PoolAnalysis: what explain, advice and what-if of one pool rest on.
#pragma once

#include <vector>

#include "pool/directory/explain.h"
#include "pool/policy/borrow_history.h"

namespace carpool::proxy::admin {

struct PoolAnalysis {
  pool::Limits limits;  // in force
  pool::Circumstances circumstances;
  Duration wait_timeout{};
  std::vector<pool::BorrowRecord> past;
};

}  // namespace carpool::proxy::admin
