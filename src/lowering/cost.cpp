// SPDX-License-Identifier: Apache-2.0
#include "lowering/cost.h"

#include <fmt/core.h>

namespace lathe {

double microseconds(const Work& work, const Target& target) {
  // The share of the rate of products that instructions reach between loads and stores. It is chosen, not measured: an
  // instruction costs half a byte on an H200 then.
  constexpr double kReached = 1.0 / 3;
  const double rate = kReached * target.products.f32 * target.cores * target.clock_mhz;
  return work.steps * target.launch_us + work.bytes / target.memory_rate + work.instructions / rate;
}

double CostModel::bytes_of(const ir::Value* value) const {
  double bytes = static_cast<double>(size_of(value->dtype()));
  for (const Expr& dim : value->shape()) bytes *= at_optimum(dim);
  return bytes;
}

double CostModel::at_optimum(const Expr& size) const {
  return static_cast<double>(size.evaluate(optimum_).value_or(1));
}

bool CostModel::pays(const ir::Value* value, const Way& way, const Way& otherwise) {
  const double time = microseconds(way.work), other = microseconds(otherwise.work);
  const auto text = [](const Way& first, double of_first, const Way& second, double of_second) {
    return fmt::format("{}: {:.3f} us; {}: {:.3f} us", first.what, of_first, second.what, of_second);
  };
  const bool pays = time < other;
  decisions_.push_back({value, pays ? text(way, time, otherwise, other) : text(otherwise, other, way, time)});
  return pays;
}

}  // namespace lathe
