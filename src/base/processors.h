// SPDX-License-Identifier: Apache-2.0
// What the operating system lets this process use of the processors.
#pragma once

#include <string>
#include <vector>

namespace lathe {

// The CPUs of the calling thread's affinity mask, ascending; never empty.
std::vector<int> affinity_cpus();

// The CPU bandwidth of this process's cgroup and of its ancestors, in CPUs; 0 = no limit. Reads cgroup v1 and v2.
// `root` is put before every path, for tests.
double cgroup_cpu_limit(const std::string& root = "");

// How many CPUs this process may use: its affinity mask, capped by its cgroup's CPU quota (rounded up). At least 1.
int allowed_cpus();

}  // namespace lathe
