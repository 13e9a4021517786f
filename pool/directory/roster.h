// Roster: the destinations of a directory, in the order they were made, and those of guests (origins that no [[origin]]
// names) in the order of their last use, so that the one to go is found without a look at all. Every step is O(log n).
// Guarded by the directory's mutex.
//
// The order of use is lazy: a borrow does not come here, so a guest stands where it was last seen, and moves back when
// the search finds that it was used since. Guests that were never lent a connection stand before all others: names that
// lead nowhere displace each other first.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/clock.h"
#include "pool/destination/destination.h"

namespace carpool::pool {

enum class Standing : std::uint8_t { guest, configured };

class Roster {
 public:
  std::size_t size() const { return members_.size() - leaving_; }
  std::size_t guests() const { return guests_.size(); }
  std::size_t leaving() const { return leaving_; }

  // Throws std::bad_alloc, and then nothing changed.
  Destination& add(std::unique_ptr<Destination> made, Standing standing);
  void set_standing(const Destination& destination, Standing standing);
  // One after the other, in the order they were made: from number 0, which moves on. Null: no more.
  Destination* next(std::uint64_t& number) const;

  // The guest that was used least recently, which goes to the end of the order as if it was used `now`. Null: there is
  // none, or many were used since they were last seen here.
  Destination* least_recent(Instant now);
  // It ended and is nobody's any more, but stays listed until take().
  void leaves(const Destination& destination);
  std::unique_ptr<Destination> take(const Destination& destination);

 private:
  struct Place {
    bool lent = false;
    Instant used{};
    std::uint64_t number = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct Member {
    std::unique_ptr<Destination> destination;
    std::optional<Place> place;  // a guest's, as in guests_
    bool leaving = false;
  };
  using Members = std::map<std::uint64_t, Member>;
  static Place place_of(std::uint64_t number, const Destination& destination);
  Members::iterator find(const Destination& destination);
  void move(Member& member, Place to);

  Members members_;  // by number
  std::unordered_map<const Destination*, std::uint64_t> numbers_;
  std::set<Place> guests_;
  std::uint64_t last_ = 0;
  std::size_t leaving_ = 0;
};

}  // namespace carpool::pool
