// `carpool --version`: the release, the commit, the compiler, and the version in use of each third-party library.
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

// Returns the versions. A library that is linked, dynamically or statically, is asked at run time; that of a
// header-only library is the one that was compiled.
std::vector<Library> libraries();

// Returns the commit that was built, as git describes it ("v0.1.0-12-g28ba577c0ffe"); empty if it was built without
// git. Defined by the program (cmake/revision.cmake).
std::string_view revision();

void print_version(std::ostream& out, std::string_view revision);

}  // namespace carpool::proxy
