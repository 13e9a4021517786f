#include "proxy/net/tls/ticket_keys.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <span>

namespace carpool::proxy::tls {
namespace {

constexpr int kFailed = -1, kUnknown = 0, kDone = 1, kRenew = 2;  // results of OpenSSL's callback

// One index for all contexts: its pointer is set once.
int keys_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

bool set_mac(EVP_MAC_CTX* mac, TicketKeys::Key& key) {
  char digest[] = "SHA256";
  const std::array params{OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key.mac.data(), key.mac.size()),
                          OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                          OSSL_PARAM_construct_end()};
  return EVP_MAC_CTX_set_params(mac, params.data()) == 1;
}

int seal(TicketKeys& keys, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac) {
  std::optional<TicketKeys::Key> key = keys.current();
  if (!key || RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) != 1) return kFailed;
  std::ranges::copy(key->name, name);
  if (EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key->cipher.data(), iv) != 1) return kFailed;
  return set_mac(mac, *key) ? kDone : kFailed;
}

int open(TicketKeys& keys, const unsigned char* name, const unsigned char* iv, EVP_CIPHER_CTX* cipher,
         EVP_MAC_CTX* mac) {
  std::optional<TicketKeys::Found> found = keys.find(name);
  if (!found) return kUnknown;
  if (EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nullptr, found->key.cipher.data(), iv) != 1) return kFailed;
  if (!set_mac(mac, found->key)) return kFailed;
  return found->renew ? kRenew : kDone;
}

int use_key(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int sealing) {
  auto& keys = *static_cast<TicketKeys*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), keys_index()));
  return sealing != 0 ? seal(keys, name, iv, cipher, mac) : open(keys, name, iv, cipher, mac);
}

std::optional<TicketKeys::Key> make_key(Instant now) {
  TicketKeys::Key key;
  for (const auto part :
       {std::span<unsigned char>(key.name), std::span<unsigned char>(key.cipher), std::span<unsigned char>(key.mac)}) {
    if (RAND_bytes(part.data(), static_cast<int>(part.size())) != 1) return std::nullopt;
  }
  key.made = now;
  return key;
}

}  // namespace

TicketKeys::Key::~Key() {
  OPENSSL_cleanse(cipher.data(), cipher.size());
  OPENSSL_cleanse(mac.data(), mac.size());
}

bool TicketKeys::install(SSL_CTX* context) {
  SSL_CTX_set_timeout(context, std::chrono::seconds(kTicketLife).count());
  return SSL_CTX_set_ex_data(context, keys_index(), this) == 1 &&
         SSL_CTX_set_tlsext_ticket_key_evp_cb(context, use_key) == 1;
}

std::optional<TicketKeys::Key> TicketKeys::current() {
  const Instant now = now_();
  const Held lock(mutex_);
  if (current_ && now - current_->made < kRotation) return current_;
  std::optional<Key> next = make_key(now);
  if (!next) return std::nullopt;
  previous_ = current_;
  current_ = next;
  return current_;
}

std::optional<TicketKeys::Found> TicketKeys::find(const unsigned char* name) {
  const Instant now = now_();
  const Held lock(mutex_);
  for (std::optional<Key>* const one : {&current_, &previous_}) {
    if (*one && now - (*one)->made >= kRotation + kTicketLife) one->reset();
  }
  for (const std::optional<Key>* const one : {&current_, &previous_}) {
    if (*one && std::equal((*one)->name.begin(), (*one)->name.end(), name)) {
      return Found{**one, one == &previous_ || now - (*one)->made >= kRotation};
    }
  }
  return std::nullopt;
}

}  // namespace carpool::proxy::tls
