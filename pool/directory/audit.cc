// Directory::audit(): compares the directory's lists with each other, and the budget with every destination.
#include "pool/directory/directory.h"

namespace carpool::pool {

void DestinationTable::audit(AuditReport& report) const {
  std::uint64_t unlisted = 0, leaving = 0;
  for (const auto& [number, member] : members_) {
    const auto found = numbers_.find(member.destination.get());
    report.expect(found != numbers_.end() && found->second == number, "a destination's number is another one");
    report.expect(!member.place || unlisted_.contains(*member.place), "a place is not in the order");
    report.expect(!member.place || !member.leaving, "a destination that leaves has a place");
    unlisted += member.place ? 1 : 0;
    leaving += member.leaving ? 1 : 0;
  }
  report.equal("unlisted destinations", unlisted_.size(), unlisted);
  report.equal("the destinations that leave", leaving_, leaving);
  report.equal("the numbered destinations", numbers_.size(), members_.size());
}

std::vector<const Destination*> Directory::retired() const {
  const Held lock(mutex_);
  std::vector<const Destination*> all;
  for (const std::unique_ptr<Destination>& one : retired_) all.push_back(one.get());
  return all;
}

AuditReport Directory::audit() const {
  AuditReport report;
  std::vector<BudgetShare> shares;
  for (std::uint64_t number = 0; const Destination* destination = next(number);) {
    shares.push_back(destination->budget_share());
  }
  const std::size_t listed = shares.size();
  // A session of a retired destination keeps its place until its loop disposes of it.
  for (const Destination* destination : retired()) shares.push_back(destination->budget_share());
  budget_.audit(shares, report);
  const Held lock(mutex_);
  table_.audit(report);
  for (const auto& [origin, destination] : by_origin_)
    report.expect(destination->origin() == origin, "an origin leads to another one's destination");
  report.expect(by_origin_.size() <= listed, "an origin has no destination");
  return report;
}

}  // namespace carpool::pool
