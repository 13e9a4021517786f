// AuditReport: the disagreements between hand-kept numbers and a recount of what they count. A class adds its own in
// audit(report), while no call into it is in progress on any thread. The report asserts nothing; the caller decides.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carpool::pool {

class AuditReport final {
 public:
  // `what` is a number's name; `kept` its value, `counted` the recount.
  void equal(std::string_view what, std::uint64_t kept, std::uint64_t counted) {
    if (kept == counted) return;
    add(std::string(what) + " is " + std::to_string(kept) + ", counted " + std::to_string(counted));
  }
  // Adds `what`, the description of the fault, unless `holds`.
  void expect(bool holds, std::string_view what) {
    if (!holds) add(std::string(what));
  }

  bool clean() const { return disagreements_.empty(); }
  // Returns all disagreements in one line; empty if there is none.
  std::string text() const {
    std::string all;
    for (const std::string& one : disagreements_) all += (all.empty() ? "" : "; ") + one;
    return all;
  }

 private:
  void add(std::string text) { disagreements_.push_back(std::move(text)); }
  std::vector<std::string> disagreements_;
};

}  // namespace carpool::pool
