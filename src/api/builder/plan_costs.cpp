// SPDX-License-Identifier: Apache-2.0
#include "api/builder/plan_costs.h"

#include <algorithm>

#include "api/json.h"

namespace lathe::api {
namespace {

// Operations in a microsecond. bf16 is as fast as f16, all types of 8 bits are as fast as i8. Without matrix units f16
// is computed in f32, and no instruction has more than 4 products of bytes where it has one of f32. Those of CPUs take
// no f32.
Json operations_of(const Target& target, bool tf32) {
  const double each = 2 * target.cores * target.clock_mhz;  // a product and its addition are two
  const double matrix = std::max(target.products.matrix, target.products.warpgroup_matrix);
  const double f32 = target.products.f32, f16 = std::max(matrix, f32);
  const bool rounds = tf32 && !target.name.starts_with("cpu");
  return json_object({{"f64", each * target.products.f64},
                      {"f32", each * (rounds ? std::max(f32, matrix / 2) : f32)},
                      {"f16", each * f16},
                      {"i8", each * (matrix > 0 ? 2 * matrix : 4 * f32)}});
}

Json describe(const Target& target, bool tf32) {
  return json_object({{"cores", target.cores},
                      {"clock_mhz", target.clock_mhz},
                      {"memory_bytes_per_us", target.memory_rate},
                      {"cache_bytes_per_us", target.cache_rate()},
                      {"launch_us", target.launch_us},
                      {"operations_per_us", operations_of(target, tf32)}});
}

}  // namespace

std::string describe_costs(const BuildReport& report, const TunerOptions& tuner) {
  Json steps = Json::array();
  for (const RegionReport& region : report.regions) {
    Json step = Json::array();
    for (const double number : {region.estimated_microseconds / 1000, region.operations, region.bytes})
      step.push_back(number);
    steps.push_back(step);
  }
  return json_object({{"device", describe(tuner.target, tuner.tf32)}, {"steps", std::move(steps)}}).text();
}

}  // namespace lathe::api
