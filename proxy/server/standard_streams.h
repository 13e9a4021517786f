// Standard streams: descriptors 0, 1 and 2 must be open before any other descriptor is opened. If the program was
// started with one of them closed, the next socket would get its number, and the log would be sent to a client.
#pragma once

namespace carpool::proxy {

// Opens the closed ones on /dev/null in the wrong direction: reads and writes fail (EBADF), so that a lost log line is
// counted as dropped. Must be the first call of main(). Returns false if one could not be opened; the program must then
// exit.
bool open_missing_standard_streams();

}  // namespace carpool::proxy
