// watched_directories(): the directories that decide which contents a path has, through symbolic links and whole
// directories that are replaced.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace carpool::proxy {

// DirectoryEvents: which events of a directory matter. `entries`: those of its entries, because it contains a file, a
// symbolic link on the way to one, or the place of one that is missing. `self`: only that it is moved or deleted.
enum class DirectoryEvents : unsigned char { self, entries };
using WatchedDirectories = std::map<std::string, DirectoryEvents>;

// Blocks as long as the file systems need.
WatchedDirectories watched_directories(const std::vector<std::string>& files);

}  // namespace carpool::proxy
