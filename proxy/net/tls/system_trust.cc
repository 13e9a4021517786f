#include "proxy/net/tls/system_trust.h"

#include <openssl/x509.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/open_to_read.h"
#include "proxy/net/tls/file.h"

namespace carpool::proxy::tls {

namespace {
constexpr std::size_t kMaxFiles = 4096;                   // of one directory
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;  // in total
constexpr std::size_t kHashLength = 8;

std::string place(const char* variable, const char* built_in) {
  const char* set = ::secure_getenv(variable);
  return set != nullptr ? set : built_in;
}

// Matches `<hash of the subject>.<number>`, the names that OpenSSL looks up in such a directory.
bool names_certificate(std::string_view name) {
  if (name.size() < kHashLength + 2 || name[kHashLength] != '.') return false;
  const std::string_view number = name.substr(kHashLength + 1);
  return name.substr(0, kHashLength).find_first_not_of(kLowerHex) == std::string_view::npos &&
         number.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns the paths sorted, so that the same directory gives the same bytes.
Result<std::vector<std::string>> certificates_in(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (paths.size() < kMaxFiles && names_certificate(at->path().filename().string())) {
      paths.push_back(at->path().string());
    }
  }
  if (error && !describes_path(error.value())) {
    return Fault{FaultKind::budget, Side::self, directory + ": " + error.message()};
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class Pieces {
 public:
  Status add(const std::string& path) {
    Result<std::string> text = read_file(path);
    if (!text && text.fault().kind == FaultKind::budget) return text.take_fault();
    if (!text || text->empty() || bytes_ + text->size() > kMaxBytes || known(*text)) return Done{};
    bytes_ += text->size();
    all_.push_back(std::move(*text));
    return Done{};
  }
  Status add_directory(const std::string& directory) {
    Result<std::vector<std::string>> paths = certificates_in(directory);
    if (!paths) return paths.take_fault();
    for (const std::string& path : *paths) {
      if (Status added = add(path); !added) return added;
    }
    return Done{};
  }
  std::vector<std::string> take() { return std::move(all_); }

 private:
  // A bundle usually contains the text of each file beside it.
  bool known(const std::string& text) const { return !all_.empty() && all_.front().find(text) != std::string::npos; }
  std::vector<std::string> all_;
  std::size_t bytes_ = 0;
};
}  // namespace

Result<std::vector<std::string>> read_system_trust() {
  Pieces pieces;
  if (Status added = pieces.add(place(X509_get_default_cert_file_env(), X509_get_default_cert_file())); !added) {
    return added.take_fault();
  }
  const std::string directories = place(X509_get_default_cert_dir_env(), X509_get_default_cert_dir());
  std::string_view rest = directories;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (Status added = pieces.add_directory(std::string(rest.substr(0, end))); !added) return added.take_fault();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return pieces.take();
}

}  // namespace carpool::proxy::tls
