#include "pool/directory/replay_plan.h"

#include <algorithm>
#include <unordered_map>

namespace carpool::pool {

std::vector<ReplayStep> plan_replay(std::vector<BorrowRecord> borrows) {
  std::stable_sort(borrows.begin(), borrows.end(), [](const auto& a, const auto& b) { return a.arrived < b.arrived; });
  std::vector<ReplayStep> plan;
  plan.reserve(borrows.size());
  std::unordered_map<std::uint16_t, std::size_t> last;
  for (const BorrowRecord& borrow : borrows) {
    ReplayStep step{borrow};
    if (borrow.caller != 0) {
      const auto [place, first] = last.try_emplace(borrow.caller, plan.size());
      if (!first) {
        const BorrowRecord& before = plan[place->second].borrow;
        const Duration gap = borrow.arrived - (before.arrived + before.waited + before.held);
        if (gap >= Duration::zero() && gap <= kPromptClient) {
          step.after = place->second;
          step.gap = gap;
        }
        place->second = plan.size();
      }
    }
    plan.push_back(step);
  }
  return plan;
}

}  // namespace carpool::pool
