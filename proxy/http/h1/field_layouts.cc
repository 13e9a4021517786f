#include "proxy/http/h1/field_layouts.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "proxy/http/byte_block.h"

namespace carpool::proxy::http {

namespace {
constexpr std::size_t kSectionEnd = 3;  // bytes of LF CR LF

Block ends_at(const char* from) {
  return where(load_block(from), '\n') & where(load_block(from + 1), '\r') & where(load_block(from + 2), '\n');
}

// Returns the size of the section at the beginning of `bytes` with the empty line at its end, or 0 if it is incomplete,
// too short or too long. For a section without fields the size is wrong; such a section is never learned.
std::size_t section_size(std::string_view bytes) {
  constexpr std::size_t kStride = 2 * sizeof(Block);
  constexpr std::size_t kSpan = kStride + kSectionEnd - 1;
  bytes = bytes.substr(0, FieldLayouts::kLongest);
  static_assert(kSpan == FieldLayouts::kShortest);
  if (bytes.size() < kSpan) return 0;
  const std::size_t last = bytes.size() - kSpan;
  for (std::size_t at = 0;; at = std::min(at + kStride, last)) {  // the last step overlaps the one before
    const Block first = ends_at(bytes.data() + at);
    const Block second = ends_at(bytes.data() + at + sizeof(Block));
    if (any_set(first | second)) {
      const std::size_t found = any_set(first) ? first_set(first) : sizeof(Block) + first_set(second);
      return at + found + kSectionEnd;
    }
    if (at == last) return 0;
  }
}

// FxHash of the words of a section, of which the last two may overlap. std::hash takes twice the time, and equal hashes
// are followed by a comparison.
std::uint32_t hash_of(std::string_view section) {
  constexpr std::uint64_t kFactor = 0x517C'C1B7'2722'0A95;
  constexpr int kRotation = 5;
  std::uint64_t hash = section.size();
  const auto add = [&](std::size_t at) {
    std::uint64_t word;
    std::memcpy(&word, section.data() + at, sizeof word);
    hash = (std::rotl(hash, kRotation) ^ word) * kFactor;
  };
  const std::size_t last = section.size() - sizeof(std::uint64_t);
  for (std::size_t at = 0; at < last; at += sizeof(std::uint64_t)) add(at);
  add(last);
  return static_cast<std::uint32_t>(hash >> 32) | 1;  // never 0, which stands for none
}
}  // namespace

FieldLayouts::Found FieldLayouts::find(std::string_view bytes) {
  const std::size_t size = section_size(bytes);
  if (size < kShortest) return {};
  const std::string_view section = bytes.substr(0, size);
  Found found{nullptr, size, hash_of(section)};
  if (sets_.empty()) return found;
  for (Entry& entry : set_of(found.hash)) {
    if (entry.hash != found.hash || entry.text != section) continue;
    entry.used = true;
    found.layout = &entry.layout;
    break;
  }
  return found;
}

void FieldLayouts::learn(std::string_view section, std::uint32_t hash, const Fields& fields) {
  const std::string_view text = section.substr(0, section.size() - kEmptyLine);
  if (fields.empty() || fields.lines(0, fields.size()) != text) return;  // white space was stripped
  auto& seen = seen_[place_of(hash) % kSeen];
  if (std::find(seen.begin(), seen.end(), hash) == seen.end()) {
    std::shift_right(seen.begin(), seen.end(), 1);
    seen.front() = hash;
    return;
  }
  Entry& entry = entry_for(hash);
  if (entry.text.empty()) ++kept_;
  entry.text.assign(section);
  entry.layout = fields.layout();
  entry.hash = hash;
  entry.used = false;  // a layout that is in use is kept in preference to a new one
}

FieldLayouts::Entry& FieldLayouts::entry_for(std::uint32_t hash) {
  if (sets_.empty()) sets_.resize(kFewestSets);
  for (;;) {
    if (Entry* const entry = free_one(set_of(hash))) return *entry;
    if (sets_.size() == kMostSets) return replaceable(set_of(hash));
    resize(2 * sets_.size());
  }
}

void FieldLayouts::resize(std::size_t sets) {
  std::vector<Set> old = std::exchange(sets_, std::vector<Set>(sets));
  for (Set& set : old) {
    for (Entry& entry : set) {
      if (entry.text.empty()) continue;
      if (Entry* const place = free_one(set_of(entry.hash))) {
        *place = std::move(entry);
      } else {
        --kept_;
      }
    }
  }
}

FieldLayouts::Entry* FieldLayouts::free_one(Set& set) {
  const auto found = std::find_if(set.begin(), set.end(), [](const Entry& entry) { return entry.text.empty(); });
  return found == set.end() ? nullptr : &*found;
}

// Returns the first entry that was not used lately. A new entry has had no chance to be used, so it is the next one
// that gives way.
FieldLayouts::Entry& FieldLayouts::replaceable(Set& set) {
  for (Entry& entry : set) {
    if (!entry.used) return entry;
    entry.used = false;
  }
  return set.front();
}

void FieldLayouts::sweep() {
  for (Set& set : sets_) {
    for (Entry& entry : set) {
      if (!entry.used && !entry.text.empty()) {
        entry = {};
        --kept_;
      }
      entry.used = false;
    }
  }
  if (kept_ == 0) {
    sets_ = {};
  } else if (sets_.size() > kFewestSets && kept_ <= kFewestSets) {
    resize(kFewestSets);
  }
  seen_ = {};
}

}  // namespace carpool::proxy::http
