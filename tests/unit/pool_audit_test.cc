// Unit tests of the audit: it reports what is stored and what was counted, and nothing while they agree.
#include "pool/core/audit_report.h"

#include <gtest/gtest.h>

#include "tests/unit/pool_fixture.h"

namespace carpool::pool {
namespace {

class AnAudit : public test::PoolScene {
 protected:
  AnAudit() : PoolScene(2) {}
};

TEST(AnAuditReport, SaysWhatIsKeptAndWhatWasCounted) {
  AuditReport report;
  report.equal("dials", 2, 2);
  report.expect(true, "never said");
  EXPECT_TRUE(report.clean());
  report.equal("dials", 2, 3);
  report.expect(false, "a connection drains");
  EXPECT_FALSE(report.clean());
  EXPECT_EQ(report.text(), "dials is 2, counted 3; a connection drains");
}

TEST_F(AnAudit, AgreesWhileConnectionsAreDialedLentIdleAndClosed) {
  waiting();
  EXPECT_EQ(audited(), "");
  world.dialed();
  EXPECT_EQ(audited(), "") << "with a grant in flight";
  world.deliver_all();
  EXPECT_EQ(audited(), "");
  borrower_on(1).borrow(destination(), {.tunnel = true});
  EXPECT_EQ(audited(), "");
}

TEST_F(AnAudit, FindsALeaseThatItsOwnerDoesNotCount) {
  leased();
  EXPECT_NE(destination().audit(nullptr).text() + audit(world, destination(), std::vector<TestBorrower*>()), "");
}

}  // namespace
}  // namespace carpool::pool
