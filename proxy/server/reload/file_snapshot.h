// Files as they are at one moment, told by hashes: what they hold, and by what a change shows that was undone.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace carpool::proxy {

struct FileSnapshot {
  std::size_t digest = 0;  // of what the file holds; a file that cannot be read has one too
  std::size_t stamp = 0;   // of inode, size, and the times of the last changes
};

// In the order of `files`. Reads regular files alone, so it does not wait for a writer.
std::vector<FileSnapshot> look_at(const std::vector<std::string>& files);

// By file, as a reader between two looks has read it; nothing: the file changed meanwhile, so nobody knows.
using Digests = std::vector<std::optional<std::size_t>>;
Digests read_between(const std::vector<FileSnapshot>& before, const std::vector<FileSnapshot>& after);

}  // namespace carpool::proxy
