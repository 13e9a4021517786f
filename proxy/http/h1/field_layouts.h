// FieldLayouts: the layouts of field sections that llhttp has accepted lately on one loop. Senders repeat their fields
// from message to message: a section of the same bytes has the same layout and is not parsed again. A layout consists
// of offsets, so each byte of a head comes from its own message, and only llhttp decides what a field is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/message.h"

namespace carpool::proxy::http {

class FieldLayouts {
 public:
  static constexpr std::size_t kShortest = 34;  // bytes of a section that is kept
  static constexpr std::size_t kLongest = 1024;
  static constexpr std::size_t kMax = 2048;     // kept sections
  static constexpr std::size_t kEmptyLine = 2;  // bytes of CR LF at the end of a section

  // The result of find(). `size` includes the empty line at the end of the section; 0 if the section is not to be kept.
  struct Found {
    const Fields::Layout* layout = nullptr;  // valid until the next call
    std::size_t size = 0;
    std::uint32_t hash = 0;
  };
  // Finds the section at the beginning of `bytes`.
  Found find(std::string_view bytes);

  // Offers the layout of `section`, which was parsed into `fields` because find() had none. Keeps it only if the same
  // section occurred twice, so that sections with an identifier of their own request cost no copy and displace no
  // other.
  void learn(std::string_view section, std::uint32_t hash, const Fields& fields);

  // Drops the layouts not used since the previous call: texts of a client that has left do not stay in memory.
  void sweep();
  bool empty() const { return kept_ == 0; }

 private:
  static constexpr std::size_t kWays = 4;  // layouts whose hash selects the same set
  static constexpr std::size_t kFewestSets = 32, kMostSets = kMax / kWays;
  static constexpr std::size_t kSeen = 1024;
  static constexpr std::size_t kSeenWays = 4;  // more sections that come in turn to one place are never learned
  struct Entry {
    std::string text;  // empty: the entry is free
    Fields::Layout layout;
    std::uint32_t hash = 0;
    bool used = false;  // found since the last sweep or the last search for a replaceable entry
  };
  using Set = std::array<Entry, kWays>;
  Set& set_of(std::uint32_t hash) { return sets_[place_of(hash) % sets_.size()]; }
  // The lowest bit of a hash is always set.
  static constexpr std::size_t place_of(std::uint32_t hash) { return hash >> 1; }
  Entry& entry_for(std::uint32_t hash);
  void resize(std::size_t sets);  // drops layouts that find no place; there is none if the number doubles
  static Entry* free_one(Set& set);
  static Entry& replaceable(Set& set);

  std::vector<Set> sets_;  // none before a layout is kept; doubled when a set is full, up to kMostSets
  // Hashes of sections that occurred once; in each place the latest first.
  std::array<std::array<std::uint32_t, kSeenWays>, kSeen> seen_{};
  std::size_t kept_ = 0;
};

}  // namespace carpool::proxy::http
