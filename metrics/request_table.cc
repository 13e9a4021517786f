#include "metrics/request_table.h"

namespace carpool::metrics {

MethodId method_id(std::string_view method) {
  for (MethodId id = 0; id + 1U < kMethods.size(); ++id) {
    if (kMethods[id] == method) return id;
  }
  return static_cast<MethodId>(kMethods.size() - 1);
}

}  // namespace carpool::metrics
