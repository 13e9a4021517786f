// TemporaryFile: a file that other code opens by its path, removed by the destructor.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace carpool::proxy {

class TemporaryFile {
 public:
  // Creates the file in $TMPDIR or /tmp, readable by this user only, with a name derived from `stem`.
  static Result<TemporaryFile> make(std::string_view stem, std::string_view contents);
  TemporaryFile(TemporaryFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace carpool::proxy
