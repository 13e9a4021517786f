// DestinationTable: the destinations of a directory in order of creation, and the unlisted ones (origins without an
// [[origin]] entry) in order of their last use, to find the one to evict. Every operation is O(log n).
//
// The order of use is lazy: a borrow does not update it; an unlisted one keeps its position until the search finds that
// it was used since. Those that never lent a connection come first, so that names without an origin displace each
// other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/clock.h"
#include "pool/core/audit_report.h"
#include "pool/destination/destination.h"

namespace carpool::pool {

enum class Listing : std::uint8_t { unlisted, configured };

class DestinationTable {
 public:
  std::size_t size() const { return members_.size() - leaving_; }
  std::size_t unlisted() const { return unlisted_.size(); }
  std::size_t leaving() const { return leaving_; }

  // Throws std::bad_alloc; nothing changes then.
  Destination& add(std::unique_ptr<Destination> made, Listing listing);
  void set_listing(const Destination& destination, Listing listing);
  // Iterates in order of creation from number 0, which is advanced. Returns null at the end.
  Destination* next(std::uint64_t& number) const;

  // Returns the least recently used unlisted destination and moves it to the end as if used `now`. Returns null if
  // there is none, or if too many were used since they were last seen.
  Destination* least_recent(Instant now);
  // Marks a destination that ended: it serves no origin any more, but stays listed until take().
  void mark_leaving(const Destination& destination);
  std::unique_ptr<Destination> take(const Destination& destination);

  // Compares the lists with each other.
  void audit(AuditReport& report) const;

 private:
  struct Place {
    bool lent = false;
    Instant used{};
    std::uint64_t number = 0;
    bool operator<(const Place& other) const {
      return std::tie(lent, used, number) < std::tie(other.lent, other.used, other.number);
    }
  };
  struct Member {
    std::unique_ptr<Destination> destination;
    std::optional<Place> place;  // position in unlisted_, if it is unlisted
    bool leaving = false;
  };
  using Members = std::map<std::uint64_t, Member>;
  static Place place_of(std::uint64_t number, const Destination& destination);
  Members::iterator find(const Destination& destination);
  void move(Member& member, Place to);

  Members members_;  // by number
  std::unordered_map<const Destination*, std::uint64_t> numbers_;
  std::set<Place> unlisted_;
  std::uint64_t last_ = 0;
  std::size_t leaving_ = 0;
};

}  // namespace carpool::pool
