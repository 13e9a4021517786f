// Opens files for reading: those that a configuration names, and the configuration itself.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace carpool {

// Returns true for an error that describes the path itself (nothing is there, it is forbidden, it is not a file). Any
// other may pass: no descriptor or memory is left, a disk failed.
bool describes_path(int error);
// Returns the system's error; its kind is `budget` if it does not describe the path.
Fault file_fault(int error);

// Opens a regular file, also by symbolic links, /dev/null, or a pipe that the shell made for this process
// (`<(COMMAND)`). All else is refused, without waiting: a FIFO without a writer would delay the start or a reload
// without end. The Fault is file_fault(), "is a directory" or "is not a regular file".
Result<Fd> open_to_read(const std::string& path);

// Opens all that can be read, such as /dev/null, a terminal, or a FIFO, for whose writer it waits. For files that the
// command line names.
Result<Fd> open_any_to_read(const std::string& path);

}  // namespace carpool
