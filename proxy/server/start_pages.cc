#include "proxy/server/start_pages.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace carpool::proxy {
namespace {

// Removes the text up to and including the first `end`, and returns it without `end`.
std::string_view take_until(std::string_view& text, char end) {
  const std::string_view taken = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), taken.size() + 1));
  return taken;
}

std::optional<std::size_t> hexadecimal(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// Returns nullopt unless `line` begins a mapping: "55d0c000-55d0f000 r-xp 00002000 fe:00 1234   /usr/bin/carpool".
std::optional<FileMapping> mapping_of(std::string_view line) {
  const auto begin = hexadecimal(take_until(line, '-')), end = hexadecimal(take_until(line, ' '));
  return begin && end ? std::optional(FileMapping{*begin, *end}) : std::nullopt;
}

bool readable_from_file(std::string_view line) {
  take_until(line, ' ');  // the addresses
  const std::string_view mode = take_until(line, ' ');
  return mode.size() == 4 && mode[1] == '-' && mode[3] == 'p' && line.find('/') != std::string_view::npos;
}

// `line`: "Anonymous:            12 kB". A page of its own that is swapped out counts only under Swap.
bool has_own_pages(std::string_view line) {
  if (!line.starts_with("Anonymous:") && !line.starts_with("Swap:")) return false;
  return line.find_first_of("123456789") != std::string_view::npos;
}

struct CleanMappings {
  bool read = false;
  std::vector<FileMapping> all;
};

// Called for the program and each of its libraries. Only their mappings are given back, and no other thread can unmap
// them meanwhile: the loader is locked. The addresses of any other file may belong to the heap by now.
int give_back_of(dl_phdr_info* object, std::size_t, void* state) noexcept {
  auto& clean = *static_cast<CleanMappings*>(state);
  try {
    if (!std::exchange(clean.read, true)) {
      std::ifstream smaps("/proc/self/smaps");
      clean.all = clean_file_mappings(smaps);
    }
  } catch (const std::bad_alloc&) {
    return 1;  // ends the iteration
  }
  for (std::size_t n = 0; n < object->dlpi_phnum; ++n) {
    const auto& segment = object->dlpi_phdr[n];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::size_t begin = object->dlpi_addr + segment.p_vaddr;
    give_back(clean.all, {begin, begin + segment.p_memsz});
  }
  return 0;
}

}  // namespace

std::vector<FileMapping> clean_file_mappings(std::istream& smaps) {
  std::vector<FileMapping> found;
  bool candidate = false;  // the last of `found` is the mapping whose lines follow
  std::string line;
  while (std::getline(smaps, line)) {
    if (const auto mapping = mapping_of(line)) {
      candidate = readable_from_file(line);
      if (candidate) found.push_back(*mapping);
    } else if (candidate && has_own_pages(line)) {
      candidate = false;
      found.pop_back();
    }
  }
  return found;
}

void give_back(const std::vector<FileMapping>& mappings, FileMapping within) {
  for (const FileMapping& mapping : mappings) {
    if (mapping.begin >= within.end || mapping.end <= within.begin) continue;
    void* const begin = reinterpret_cast<void*>(mapping.begin);  // NOLINT(performance-no-int-to-ptr): the kernel's text
    static_cast<void>(::madvise(begin, mapping.end - mapping.begin, MADV_DONTNEED));  // fails for locked memory
  }
}

void give_back_start_pages() {
  CleanMappings clean;
  ::dl_iterate_phdr(give_back_of, &clean);
}

}  // namespace carpool::proxy
