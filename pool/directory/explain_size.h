// The sentences about a size that follows the load.
#pragma once

#include <string>
#include <vector>

#include "pool/destination/snapshot.h"
#include "pool/policy/size_controller.h"

namespace carpool::pool {

// "48 requests waited too long for a connection …": the evidence of one change.
std::string why_resized(const SizeChange& change);
// Adds its bounds, the number of changes, and the last ones with their reasons.
void explain_size(const AutoSizeSnapshot& size, std::vector<std::string>& lines);

}  // namespace carpool::pool
