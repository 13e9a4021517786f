// Sites: the places in the source that access an atomic, and the controls: one order of one site made weaker. A
// scenario must then fail, or the order is not needed.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <source_location>
#include <string>
#include <unordered_map>

namespace carpool::explore {

#ifdef __cpp_lib_source_location
using At = std::source_location;
#else
// For a compiler that only analyses the explorer's sources.
struct At {
  static constexpr At current() { return {}; }
  static constexpr std::uint32_t line() { return 0; }
  static constexpr std::uint32_t column() { return 0; }
  static constexpr const char* file_name() { return ""; }
  static constexpr const char* function_name() { return ""; }
};
#endif

class Sites {
 public:
  enum class Part : std::uint8_t { load, store, rmw, success, failure };

  // Records each site with its orders, for print().
  void note_all() { noting_ = true; }
  // `control`: what print() names a site, and the order that it then has: "KEY ORDER". One place in the source may be
  // several sites, one for each instance of its template: each call adds a site.
  void weaken(const std::string& control);
  // Every seq_cst is only acquire and release.
  void weaken_seq_cst() { no_seq_cst_ = true; }

  // Not inline: each read of a member would be one of the explored code, which it reports.
  std::memory_order order(std::memory_order order, Part part, const At& at);
  // The scenario that begins has not reached the weakened site so far.
  bool nothing_weakened() const { return !weakened_.empty() && !met_; }
  void begin_scenario() { met_ = false; }
  // A line for each site: "KEY<tab>ORDER<tab>FUNCTION".
  void print() const;

 private:
  struct Place {
    const char* file;
    const char* function;
    std::uint32_t line, column;
    Part part;
    bool operator==(const Place&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Place& place) const;
  };
  struct Site {
    std::string key;
    std::optional<std::memory_order> weakened;
  };
  struct Noted {
    std::memory_order order;
    std::string function;
  };
  std::memory_order changed(std::memory_order order, Part part, const At& at);
  Site describe(const Place& place, std::memory_order order);

  bool noting_ = false, no_seq_cst_ = false, met_ = false;
  std::map<std::string, std::memory_order> weakened_;
  std::unordered_map<Place, Site, Hash> sites_;
  std::map<std::string, Noted> noted_;
};

}  // namespace carpool::explore
