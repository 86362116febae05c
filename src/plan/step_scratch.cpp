// SPDX-License-Identifier: Apache-2.0
#include "plan/step_scratch.h"

#include <algorithm>

namespace lathe::plan {

StepScratch::StepScratch(const Plan& plan) : shared_(plan.steps.size()) {
  auto section = plan.sections.begin();
  std::vector<size_t> streams;  // of the section: 1 + the lifetime; 0 = none yet
  for (uint32_t i = 0; i < shared_.size(); ++i) {
    if (section != plan.sections.end() && i == section->end) ++section;
    const bool inside = section != plan.sections.end() && i >= section->first;
    if (inside && i == section->first) streams.assign(plan.auxiliary_streams() + 1, 0);
    if (inside && streams[plan.steps[i].stream] != 0) {
      shared_[i] = streams[plan.steps[i].stream] - 1;
      continue;
    }
    shared_[i] = lifetimes_.size();
    lifetimes_.push_back({0, inside ? section->first : i, inside ? section->end - 1 : i});
    if (inside) streams[plan.steps[i].stream] = lifetimes_.size();
  }
}

std::vector<Lifetime> StepScratch::lifetimes(std::span<const size_t> bytes) const {
  std::vector<Lifetime> sized = lifetimes_;
  for (size_t i = 0; i < shared_.size(); ++i) sized[shared_[i]].bytes = std::max(sized[shared_[i]].bytes, bytes[i]);
  return sized;
}

}  // namespace lathe::plan
