// net_tls_chain_support.h: a root, an authority that it issued, and a peer's certificate that this one issued, each
// with its own lifetime; and revocation lists.
#pragma once

#include <openssl/pem.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "proxy/net/tls/certificate.h"
#include "proxy/net/tls/certificate_draft.h"
#include "proxy/net/tls/ticket_keys.h"
#include "tests/unit/net_tls_support.h"

namespace carpool::proxy::tls {

using namespace std::chrono_literals;

inline Certified issuing(const std::string& name, std::chrono::seconds life, const Certified* issuer) {
  return CertificateDraft()
      .valid(-1h, life)
      .subject(name)
      .issued_by(issuer == nullptr ? nullptr : issuer->certificate.get())
      .extend(NID_basic_constraints, "critical,CA:TRUE")
      .extend(NID_key_usage, "critical,keyCertSign,cRLSign")
      .extend(NID_subject_key_identifier, "hash")
      .sign(issuer == nullptr ? nullptr : issuer->key.get());
}

inline Certified of_localhost(std::chrono::seconds life, const Certified& issuer) {
  return CertificateDraft()
      .valid(-1h, life)
      .subject("peer")
      .issued_by(issuer.certificate.get())
      .extend(NID_basic_constraints, "critical,CA:FALSE")
      .extend(NID_subject_alt_name, "DNS:localhost")
      .sign(issuer.key.get());
}

// A list of this issuer, signed an hour ago, in PEM.
inline std::string revocation_list(const Certified& issuer, std::chrono::seconds life,
                                   const std::vector<const Certified*>& revoked = {}) {
  using ListPtr = std::unique_ptr<X509_CRL, FreeWith<X509_CRL_free>>;
  using TimePtr = std::unique_ptr<ASN1_TIME, FreeWith<ASN1_TIME_free>>;
  const ListPtr list(X509_CRL_new());
  const TimePtr last(X509_gmtime_adj(nullptr, -3600)), next(X509_gmtime_adj(nullptr, life.count()));
  EXPECT_EQ(X509_CRL_set_version(list.get(), X509_CRL_VERSION_2), 1);
  EXPECT_EQ(X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(issuer.certificate.get())), 1);
  EXPECT_EQ(X509_CRL_set1_lastUpdate(list.get(), last.get()), 1);
  EXPECT_EQ(X509_CRL_set1_nextUpdate(list.get(), next.get()), 1);
  for (const Certified* one : revoked) {
    X509_REVOKED* const entry = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(one->certificate.get()));
    X509_REVOKED_set_revocationDate(entry, last.get());
    EXPECT_EQ(X509_CRL_add0_revoked(list.get(), entry), 1);
  }
  EXPECT_GT(X509_CRL_sign(list.get(), issuer.key.get(), EVP_sha256()), 0);
  const BioPtr memory(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_X509_CRL(memory.get(), list.get()), 1);
  const char* text = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

struct Lives {
  std::chrono::seconds root = 1h, middle = 1h, leaf = 1h;
};

struct Chain {
  explicit Chain(const Lives& lives = {})
      : root(issuing("root", lives.root, nullptr)),
        middle(issuing("middle", lives.middle, &root)),
        leaf(of_localhost(lives.leaf, middle)) {}
  Certified root, middle, leaf;
};

// A client and a server: one presents the chain, the other trusts its root and applies these lists.
class ChainPair {
 public:
  ChainPair(const Chain& chain, const std::string& lists, bool of_the_client, const std::string& version = "1.3")
      : cert_(pem_of(chain.leaf.certificate.get()) + pem_of(chain.middle.certificate.get())),
        key_(pem_of(chain.leaf.key.get())),
        trusted_(pem_of(chain.root.certificate.get()) + lists),
        of_the_client_(of_the_client) {
    ServerSettings serving;
    serving.max_version = version;
    const Identity own;
    serving.cert_file = of_the_client ? own.certificate.path() : cert_.path();
    serving.key_file = of_the_client ? own.key.path() : key_.path();
    if (of_the_client) serving.client_ca_file = trusted_.path();
    auto made = ServerContext::make(serving, keys_time);
    EXPECT_TRUE(made) << (made ? "" : made.fault().detail);
    if (made) server = std::move(*made);
    ClientSettings settings;
    if (of_the_client) {
      settings.cert_file = cert_.path();
      settings.key_file = key_.path();
      client = trust(own.certificate.path(), settings);
    } else {
      settings.ca_file = trusted_.path();
      client = make(settings);
    }
  }
  // Connects and reads what the server sends, tickets included. Returns nullptr if either side rejects the other.
  std::unique_ptr<Talk> connect() {
    auto talk = std::make_unique<Talk>(*client, *server);
    if (!talk->up || talk->server_refusal) {
      const std::optional<Fault>& said = of_the_client_ ? talk->server_refusal : talk->refusal;
      refusal = said ? said->detail : "the other side refuses";
      return nullptr;
    }
    Talk::write(*talk->server, "x");
    Talk::read(*talk->client, 1);
    return talk;
  }
  // From now on each resumption gets a ticket, of a new key. All servers have one time for their keys.
  static void replace_keys() { now_of_keys += TicketKeys::kRotation; }
  // Replaces the client by one with the sessions that a new process receives.
  void hand_over() {
    auto next = make(client->settings());
    for (const std::string& session : client->hand_out("localhost:443", 8)) {
      EXPECT_TRUE(next->remember("localhost:443", session));
    }
    client = std::move(next);
  }

  std::unique_ptr<ServerContext> server;
  std::unique_ptr<ClientContext> client;
  std::string refusal;

 private:
  static Instant keys_time() { return now_of_keys; }
  static inline Instant now_of_keys{std::chrono::hours(24)};
  static std::unique_ptr<ClientContext> make(const ClientSettings& settings) {
    auto made = ClientContext::make(settings);
    EXPECT_TRUE(made) << (made ? "" : made.fault().detail);
    return std::move(*made);
  }
  net::TemporaryFile cert_, key_, trusted_;
  const bool of_the_client_;
};

}  // namespace carpool::proxy::tls
