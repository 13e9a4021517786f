// Unit tests of TlsIdentity: a loading that failed for a reason that may pass is repeated.
#include "proxy/upstream/origin/tls_identity.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/sim/session_world.h"

namespace carpool::proxy {
namespace {

class TasksAtOnce final : public exec::Submitter {
 public:
  bool submit(exec::TaskPtr task) override {
    exec::start_task(*task.release());
    return true;
  }
};

struct CountedMail final : exec::Mail {
  void arrive() override { ++arrived; }
  int arrived = 0;
};

TEST(ATlsIdentity, IsLoadedAgainAfterNoDescriptorWasLeft) {
  exec::assume_on_loop();
  const Instant now{std::chrono::hours(1)};
  test::SimLoop loop(0, now);
  TasksAtOnce tasks;
  TlsIdentity identity(tls::ClientSettings{});
  CountedMail mail;
  {
    // UBSan examines the first call of each virtual function with descriptors of its own.
    CountedMail first;
    TlsIdentity other(tls::ClientSettings{});
    EXPECT_FALSE(other.ready_or_notify(loop, tasks, first));
    loop.mailbox.deliver(SIZE_MAX);
    EXPECT_EQ(1, first.arrived);
  }
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  EXPECT_FALSE(identity.ready_or_notify(loop, tasks, mail));
  ::setrlimit(RLIMIT_NOFILE, &before);
  loop.mailbox.deliver(SIZE_MAX);
  EXPECT_EQ(1, mail.arrived);
  const auto failed = identity.get();
  ASSERT_FALSE(failed);
  EXPECT_EQ(FaultKind::budget, failed.fault().kind);
  EXPECT_FALSE(identity.ready_or_notify(loop, tasks, mail));
  loop.mailbox.deliver(SIZE_MAX);
  EXPECT_EQ(2, mail.arrived);
  EXPECT_TRUE(identity.get());
}

}  // namespace
}  // namespace carpool::proxy
