// The sentences about a size that follows the load.
#pragma once

#include <string>
#include <vector>

#include "pool/destination/snapshot.h"
#include "pool/policy/size_controller.h"

namespace carpool::pool {

// Returns the evidence of one change: "48 requests waited too long for a connection …".
std::string why_resized(const SizeChange& change);
// Adds sentences with the bounds, the number of changes, and the last changes with their reasons.
void explain_size(const AutoSizeSnapshot& size, std::vector<std::string>& lines);

}  // namespace carpool::pool
