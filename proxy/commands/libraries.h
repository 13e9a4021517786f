// `carpool --version`: the release, the commit, the compiler, and each third-party library with the version that runs.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace carpool::proxy {

struct Library {
  std::string_view name;
  std::string version;
};

// Linked dynamically or statically: the library itself is asked. Of a library of headers: the headers that were
// compiled.
std::vector<Library> libraries();

// The commit that was built, as git describes it ("v0.1.0-12-g28ba577c0ffe"); empty if it was built without git.
// Defined by the program (cmake/revision.cmake).
std::string_view revision();

void print_version(std::ostream& out, std::string_view revision);

}  // namespace carpool::proxy
