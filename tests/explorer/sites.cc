#include "tests/explorer/sites.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace carpool::explore {
namespace {

constexpr std::array kParts = {"load", "store", "rmw", "success", "failure"};
constexpr std::array kOrders = {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};

const char* name(std::memory_order order) {
  return kOrders[static_cast<std::size_t>(order)];
}

std::string_view in_the_tree(std::string_view file) {
  for (const std::string_view part : {"/pool/", "/exec/", "/metrics/", "/tests/"}) {
    if (const auto at = file.rfind(part); at != std::string_view::npos) return file.substr(at + 1);
  }
  return file;
}

}  // namespace

std::size_t Sites::Hash::operator()(const Place& place) const {
  return reinterpret_cast<std::uintptr_t>(place.function) ^ std::size_t{131} * place.line ^
         std::size_t{7} * place.column ^ static_cast<unsigned>(place.part);
}

void Sites::weaken(const std::string& control) {
  const auto space = control.rfind(' ');
  for (std::size_t n = 0; n < kOrders.size(); ++n) {
    if (space != std::string::npos && control.substr(space + 1) == kOrders[n]) {
      weakened_[control.substr(0, space)] = static_cast<std::memory_order>(n);
      return;
    }
  }
  std::printf("no such order: %s\n", control.c_str());
  std::exit(2);
}

Sites::Site Sites::describe(const Place& place, std::memory_order order) {
  std::uint32_t hash = 2166136261U;  // of the function: it names the template arguments, so a verb of the entry's word
  for (const char c : std::string_view(place.function)) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  // One function may pass several orders through one line.
  std::array<char, 64> tail{};
  std::snprintf(tail.data(), tail.size(), ":%u:%u:%08x:%s", place.line, place.column, hash,
                kParts[static_cast<std::size_t>(place.part)]);
  Site site{std::string(in_the_tree(place.file)) + tail.data(), {}};
  if (const auto found = weakened_.find(site.key); found != weakened_.end()) site.weakened = found->second;
  if (noting_) noted_.insert_or_assign(site.key, Noted{order, place.function});
  return site;
}

std::memory_order Sites::order(std::memory_order order, Part part, const At& at) {
  if (!noting_ && !no_seq_cst_ && weakened_.empty()) return order;
  return changed(order, part, at);
}

std::memory_order Sites::changed(std::memory_order order, Part part, const At& at) {
  if (no_seq_cst_ && order == std::memory_order_seq_cst) {
    if (part == Part::load || part == Part::failure) return std::memory_order_acquire;
    return part == Part::store ? std::memory_order_release : std::memory_order_acq_rel;
  }
  const Place place{at.file_name(), at.function_name(), at.line(), at.column(), part};
  auto known = sites_.find(place);
  if (known == sites_.end()) known = sites_.emplace(place, describe(place, order)).first;
  if (!known->second.weakened) return order;
  met_ = true;
  return *known->second.weakened;
}

void Sites::print() const {
  for (const auto& [key, noted] : noted_)
    std::printf("%s\t%s\t%s\n", key.c_str(), name(noted.order), noted.function.c_str());
}

}  // namespace carpool::explore
