// Unit tests of the cores granted by a cgroup, on trees of files as Linux provides them.
#include "proxy/config/cores.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace carpool::proxy::config {
namespace {

namespace fs = std::filesystem;

class Cores : public ::testing::Test {
 protected:
  Cores() {
    std::string pattern = fs::temp_directory_path() / "carpool-cores-XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~Cores() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << '\n';
  }
  // The cores granted by affinity alone.
  static unsigned all() { return granted_cores("/nonexistent"); }
  std::string root_;
};

TEST_F(Cores, AreThoseOfTheAffinityMaskWithoutACgroup) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(all(), static_cast<unsigned>(CPU_COUNT(&set)));
  EXPECT_GE(granted_cores(), 1U);
}

TEST_F(Cores, FollowTheQuotaOfVersion2) {
  write("/proc/self/cgroup", "0::/app");
  write("/sys/fs/cgroup/app/cpu.max", "100000 100000");
  EXPECT_EQ(granted_cores(root_), 1U);
  write("/sys/fs/cgroup/app/cpu.max", "max 100000");
  EXPECT_EQ(granted_cores(root_), all());
  write("/sys/fs/cgroup/app/cpu.max", "99900000 100000");
  EXPECT_EQ(granted_cores(root_), all());
}

TEST_F(Cores, RoundAFractionUpAndAreNeverNone) {
  write("/proc/self/cgroup", "0::/");
  write("/sys/fs/cgroup/cpu.max", "1000 100000");
  EXPECT_EQ(granted_cores(root_), 1U);
  if (all() < 2) return;
  write("/sys/fs/cgroup/cpu.max", "150000 100000");
  EXPECT_EQ(granted_cores(root_), 2U);
}

TEST_F(Cores, AreTheLeastOfAllGroupsAbove) {
  write("/proc/self/cgroup", "0::/kube/pod/app");
  write("/sys/fs/cgroup/kube/pod/app/cpu.max", "max 100000");
  write("/sys/fs/cgroup/kube/pod/cpu.max", "100000 100000");
  write("/sys/fs/cgroup/kube/cpu.max", "max 100000");
  EXPECT_EQ(granted_cores(root_), 1U);
}

TEST_F(Cores, FollowTheQuotaOfVersion1) {
  write("/proc/self/cgroup", "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n0::/");
  write("/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "50000");
  write("/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000");
  EXPECT_EQ(granted_cores(root_), 1U);
  write("/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(granted_cores(root_), all());
}

TEST_F(Cores, FindTheQuotaAtTheMountWhereTheContainerSeesNoPath) {
  write("/proc/self/cgroup", "4:cpu:/docker/0123456789");
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(granted_cores(root_), 1U);
}

TEST_F(Cores, IgnoreWhatTheyCannotRead) {
  write("/proc/self/cgroup", "nonsense\n0:\n::\n0::relative\n0::/../..");
  write("/sys/fs/cgroup/cpu.max", "");
  EXPECT_EQ(granted_cores(root_), all());
}

}  // namespace
}  // namespace carpool::proxy::config
