// Descriptors 0, 1 and 2 must be open before anything else opens a descriptor. A program that was started with one of
// them closed would otherwise give its number to the next socket, and the log would go to a client.
#pragma once

namespace carpool::proxy {

// Opens those that are closed on /dev/null, with the wrong direction: a read or a write of them fails (EBADF), so that
// a log line that goes nowhere is counted as dropped. Must be the first call of main(). False: one of them could not be
// opened; the program must not go on.
bool open_missing_standard_streams();

}  // namespace carpool::proxy
