// SPDX-License-Identifier: Apache-2.0
#include "base/processors.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>

namespace lathe {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> items;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) items.push_back(part);
  return items;
}

bool holds(const std::string& list, std::string_view item) {
  const std::vector<std::string> items = split(list, ',');
  return std::find(items.begin(), items.end(), item) != items.end();
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end != text.data() ? std::optional(value) : std::nullopt;
}

double ratio(std::string_view quota, std::string_view period) {
  const std::optional<double> q = number(quota), p = number(period);
  return q && p && *q > 0 && *p > 0 ? *q / *p : 0;
}

// One directory's own limit.
double limit_in(const std::string& directory, bool v2) {
  if (!v2) return ratio(first_line(directory + "/cpu.cfs_quota_us"), first_line(directory + "/cpu.cfs_period_us"));
  const std::vector<std::string> fields = split(first_line(directory + "/cpu.max"), ' ');
  return fields.size() == 2 ? ratio(fields[0], fields[1]) : 0;  // "max 100000" has no number
}

struct Mount {
  std::string root;   // the part of the hierarchy that is mounted
  std::string point;  // where
};

// mountinfo: id parent major:minor root point options [optional...] - type source super_options
std::optional<Mount> find_mount(const std::string& root, bool v2) {
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> left = split(line.substr(0, dash), ' ');
    const std::vector<std::string> right = split(line.substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    if (v2 ? right[0] == "cgroup2" : right[0] == "cgroup" && holds(right[2], "cpu")) return Mount{left[3], left[4]};
  }
  return std::nullopt;
}

// This process's path in the hierarchy. A line is "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1).
std::optional<std::string> find_path(const std::string& root, bool v2) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (v2 ? controllers.empty() : holds(controllers, "cpu")) return line.substr(second + 1);
  }
  return std::nullopt;
}

double hierarchy_limit(const std::string& root, bool v2) {
  const std::optional<Mount> mount = find_mount(root, v2);
  std::optional<std::string> path = find_path(root, v2);
  if (!mount || !path) return 0;
  // In a container the mount may show only a subtree; a path outside of it means that the subtree is our own.
  if (mount->root != "/") path = path->starts_with(mount->root) ? path->substr(mount->root.size()) : "";
  double limit = 0;
  for (std::string directory = *path;; directory.resize(directory.rfind('/'))) {
    if (directory == "/") directory.clear();
    const double own = limit_in(root + mount->point + directory, v2);
    if (own > 0 && (limit == 0 || own < limit)) limit = own;
    if (directory.rfind('/') == std::string::npos) return limit;
  }
}

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

}  // namespace

std::vector<int> affinity_cpus() {
  std::vector<int> cpus;
  for (size_t capacity = 1024; capacity <= (1u << 20) && cpus.empty(); capacity *= 4) {
    const std::unique_ptr<cpu_set_t, FreeCpuSet> set(CPU_ALLOC(capacity));
    if (!set) break;
    const size_t bytes = CPU_ALLOC_SIZE(capacity);
    CPU_ZERO_S(bytes, set.get());
    const bool ok = sched_getaffinity(0, bytes, set.get()) == 0;
    if (!ok && errno != EINVAL) break;  // EINVAL: the kernel's mask is larger than ours
    for (size_t cpu = 0; ok && cpu < capacity; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set.get())) cpus.push_back(static_cast<int>(cpu));
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

double cgroup_cpu_limit(const std::string& root) {
  const double v1 = hierarchy_limit(root, false), v2 = hierarchy_limit(root, true);
  return v1 > 0 && v2 > 0 ? std::min(v1, v2) : std::max(v1, v2);
}

int allowed_cpus() {
  const int cpus = static_cast<int>(affinity_cpus().size());
  const double limit = cgroup_cpu_limit();
  return limit > 0 ? std::clamp(static_cast<int>(std::min(std::ceil(limit), 1e6)), 1, cpus) : cpus;
}

}  // namespace lathe
