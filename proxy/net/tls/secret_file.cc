#include "proxy/net/tls/secret_file.h"

#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/contents.h"
#include "base/forbid_dumps.h"
#include "base/open_to_read.h"

namespace carpool::proxy::tls {
namespace {

constexpr std::size_t kMaxKey = std::size_t{16} << 10;
constexpr mode_t kForbidden = S_IWGRP | S_IRWXO;

Fault bad_key_file(const std::string& path, std::string_view why) {
  return {FaultKind::tls_protocol, Side::self, path + ": " + std::string(why)};
}

// The buffer is on the stack and of a fixed size: a growing one would leave copies of the key in freed memory.
struct Secret {
  Secret() = default;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
  std::array<char, kMaxKey> bytes;
};

std::string mode_text(mode_t mode) {
  std::string text = "0000";
  for (unsigned digit = 0; digit < 3; ++digit) {
    text[3 - digit] = static_cast<char>('0' + ((mode >> (3 * digit)) & 7U));
  }
  return text;
}

}  // namespace

Result<KeyPtr> read_secret_key(const std::string& path) {
  const Result<Fd> file = open_to_read(path);
  if (!file) return bad_key_file(path, file.fault().detail);
  struct stat status {};
  if (::fstat(file->get(), &status) != 0)
    return bad_key_file(path, std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  if ((status.st_mode & kForbidden) != 0) {
    return bad_key_file(path,
                        "its mode is " + mode_text(status.st_mode) + ", so others may use the key: set it to 0600");
  }
  forbid_dumps();
  Secret secret;
  const std::optional<std::size_t> size = read_into(file->get(), secret.bytes);
  if (!size || *size == secret.bytes.size()) {
    return bad_key_file(path, std::strerror(size ? EFBIG : errno));  // NOLINT(concurrency-mt-unsafe)
  }
  ERR_clear_error();
  const BioPtr in(BIO_new_mem_buf(secret.bytes.data(), static_cast<int>(*size)));
  KeyPtr key(in ? PEM_read_bio_PrivateKey(in.get(), nullptr, no_passphrase, nullptr) : nullptr);
  if (!key) return bad_key_file(path, "not a private key in PEM without a passphrase: " + std::string(take_reason()));
  return key;
}

}  // namespace carpool::proxy::tls
