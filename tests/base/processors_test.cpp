// SPDX-License-Identifier: Apache-2.0
#include "base/processors.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace lathe {
namespace {

class CgroupLimit : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lathe_cgroup_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { ASSERT_EQ(std::system(("rm -rf " + root_).c_str()), 0); }
  void write(const std::string& path, const std::string& text) {
    const std::string full = root_ + path;
    ASSERT_EQ(std::system(("mkdir -p " + full.substr(0, full.rfind('/'))).c_str()), 0);
    std::ofstream(full) << text;
  }
  std::string root_;
};

TEST_F(CgroupLimit, NoneWithoutCgroups) { EXPECT_EQ(cgroup_cpu_limit(root_), 0); }

TEST_F(CgroupLimit, Version2TakesTheTightestAncestor) {
  write("/proc/self/mountinfo",
        "22 1 0:20 / /proc rw - proc proc rw\n30 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n");
  write("/proc/self/cgroup", "0::/system.slice/app.service\n");
  write("/sys/fs/cgroup/system.slice/app.service/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root_), 0);
  write("/sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root_), 1.5);
  write("/sys/fs/cgroup/system.slice/app.service/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root_), 0.5);
}

TEST_F(CgroupLimit, Version1InAContainer) {
  write("/proc/self/mountinfo",
        "31 22 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro shared:3 - cgroup cgroup rw,cpu,cpuacct\n");
  write("/proc/self/cgroup", "4:cpuset:/\n3:cpu,cpuacct:/docker/abc\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_limit(root_), 3);
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cgroup_cpu_limit(root_), 0);
}

TEST_F(CgroupLimit, GarbageIsNoLimit) {
  write("/proc/self/mountinfo", "junk\n - \n30 22 0:26 / /c rw - cgroup2 x y\n");
  write("/proc/self/cgroup", "::\n0::no/slash/first\n");
  write("/c/cpu.max", "lots of\n");
  EXPECT_EQ(cgroup_cpu_limit(root_), 0);
}

}  // namespace
}  // namespace lathe
