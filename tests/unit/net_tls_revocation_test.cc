// Unit tests of revocation lists over the whole chain, for the certificates of clients and of origins.
#include "tests/unit/net_tls_chain_support.h"

namespace carpool::proxy::tls {
namespace {

class TlsRevocation : public ::testing::TestWithParam<bool> {
 protected:
  // Returns why the chain is rejected; empty: it is accepted.
  std::string refusal(const std::string& lists) { return refusal(chain, lists); }
  static std::string refusal(const Chain& of, const std::string& lists) {
    ChainPair pair(of, lists, GetParam());
    return pair.connect() != nullptr ? "" : pair.refusal;
  }
  std::string of_root(std::chrono::seconds life = 1h) const { return revocation_list(chain.root, life); }
  std::string of_middle(std::chrono::seconds life = 1h) const { return revocation_list(chain.middle, life); }
  const Chain chain;
};

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_P(TlsRevocation, OfNobodyAcceptsTheChain) {
  EXPECT_EQ(refusal(""), "");
  EXPECT_EQ(refusal(of_root() + of_middle()), "");
}

TEST_P(TlsRevocation, OfThePeerRefusesIt) {
  const std::string list = revocation_list(chain.middle, 1h, {&chain.leaf});
  EXPECT_SAYS(refusal(list), "certificate revoked");
  EXPECT_SAYS(refusal(of_root() + list), "certificate revoked");
}

TEST_P(TlsRevocation, OfAnIntermediateAuthorityRefusesWhatItIssued) {
  const std::string said = refusal(revocation_list(chain.root, 1h, {&chain.middle}) + of_middle());
  EXPECT_SAYS(said, "certificate revoked: middle");
}

TEST_P(TlsRevocation, PassesAnIntermediateAuthorityWhoseIssuerHasNoList) {
  EXPECT_EQ(refusal(of_middle()), "");
}

TEST_P(TlsRevocation, PassesNoOtherFaultOfAnAuthorityWhoseIssuerHasNoList) {
  const Chain ended({.middle = -1min});
  EXPECT_SAYS(refusal(ended, revocation_list(ended.middle, 1h)), "certificate has expired");
  Chain no_authority;
  no_authority.middle = CertificateDraft()
                            .valid(-1h, 1h)
                            .subject("middle")
                            .issued_by(no_authority.root.certificate.get())
                            .extend(NID_basic_constraints, "critical,CA:FALSE")
                            .sign(no_authority.root.key.get());
  no_authority.leaf = of_localhost(1h, no_authority.middle);
  EXPECT_SAYS(refusal(no_authority, revocation_list(no_authority.middle, 1h)), "invalid CA certificate");
}

TEST_P(TlsRevocation, NeedsAListOfThePeersIssuer) {
  EXPECT_SAYS(refusal(of_root()), "unable to get certificate CRL");
}

TEST_P(TlsRevocation, RefusesAListThatHasEndedAtAnyDepth) {
  EXPECT_SAYS(refusal(of_middle(-1min)), "CRL has expired");
  EXPECT_SAYS(refusal(of_root(-1min) + of_middle()), "CRL has expired");
}

TEST_P(TlsRevocation, RefusesAListThatAnotherKeySigned) {
  const Chain other;
  EXPECT_SAYS(refusal(of_root() + revocation_list(other.middle, 1h)), "CRL signature failure");
  EXPECT_SAYS(refusal(revocation_list(other.root, 1h) + of_middle()), "CRL signature failure");
}

INSTANTIATE_TEST_SUITE_P(Lists, TlsRevocation, ::testing::Values(true, false),
                         [](const auto& side) { return side.param ? "OfClients" : "OfOrigins"; });

}  // namespace
}  // namespace carpool::proxy::tls
