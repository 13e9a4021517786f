#include "proxy/server/start_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

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

// `line`: "Anonymous:            12 kB".
bool has_own_pages(std::string_view line) {
  constexpr std::string_view kKey = "Anonymous:";
  return line.starts_with(kKey) && line.find_first_of("123456789", kKey.size()) != std::string_view::npos;
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

void give_back_start_pages() {
  std::ifstream smaps("/proc/self/smaps");
  for (const FileMapping& mapping : clean_file_mappings(smaps)) {
    void* const begin = reinterpret_cast<void*>(mapping.begin);  // NOLINT(performance-no-int-to-ptr): the kernel's text
    static_cast<void>(::madvise(begin, mapping.end - mapping.begin, MADV_DONTNEED));  // fails for locked memory
  }
}

}  // namespace carpool::proxy
