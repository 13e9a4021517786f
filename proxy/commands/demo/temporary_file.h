// TemporaryFile: a file that others find by its path, and that goes away with its owner.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace carpool::proxy {

class TemporaryFile {
 public:
  // In $TMPDIR or /tmp, readable by this user alone, named after `stem`.
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
