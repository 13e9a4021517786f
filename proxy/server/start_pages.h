// Start pages: pages of program files, mostly code, that only the start has used. They stay mapped and count as
// resident memory until something unmaps them, although the kernel can read them again from the file at any time.
#pragma once

#include <cstddef>
#include <istream>
#include <vector>

namespace carpool::proxy {

struct FileMapping {
  std::size_t begin = 0, end = 0;  // addresses
};
// Returns the mappings that can be read again from their files: private, not writable, and without a page of their own,
// such as one with relocations or with a debugger's breakpoint. `smaps`: /proc/PID/smaps.
std::vector<FileMapping> clean_file_mappings(std::istream& smaps);

// Unmaps the pages of those mappings that have an address within `within`. What is used again is mapped again at its
// first use, from the page cache, with its neighbours: about a microsecond for 64 KiB.
void give_back(const std::vector<FileMapping>& mappings, FileMapping within);

// Does so for the clean mappings of the program and its libraries. No effect without /proc.
void give_back_start_pages();

}  // namespace carpool::proxy
