// FileSnapshot: the state of a file at one moment as two hashes: of its contents, and of the attributes that reveal a
// change that was undone.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace carpool::proxy {

struct FileSnapshot {
  std::size_t digest = 0;  // digest of the contents; an unreadable file has one too
  std::size_t stamp = 0;   // digest of inode, size and modification times
};

// Returns snapshots in the order of `files`. Reads regular files only, so that it never waits for a writer.
std::vector<FileSnapshot> take_snapshots(const std::vector<std::string>& files);

// Returns, per file, the digest that a reader between the two snapshots must have seen, or nothing if the file changed
// in between.
using Digests = std::vector<std::optional<std::size_t>>;
Digests read_between(const std::vector<FileSnapshot>& before, const std::vector<FileSnapshot>& after);

}  // namespace carpool::proxy
