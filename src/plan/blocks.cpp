// SPDX-License-Identifier: Apache-2.0
#include "plan/blocks.h"

#include "plan/limits.h"

namespace lathe::plan {
namespace {

class Nesting {
 public:
  explicit Nesting(std::span<const Step> steps) : steps_(steps), places_(steps.size()) {}

  Result<std::vector<StepPlace>> run() {
    LATHE_TRY(walk(0, static_cast<uint32_t>(steps_.size()), 0));
    return std::move(places_);
  }

 private:
  // Of steps [first, end), which are a body or the whole plan.
  Result<> walk(uint32_t first, uint32_t end, uint32_t depth) {
    for (uint32_t i = first; i < end; i = places_[i].end) {
      places_[i] = {depth, i + 1};
      const auto* block = std::get_if<Block>(&steps_[i].work);
      if (!block) continue;
      if (depth == kMaxBlockDepth)
        return fail(ErrorCode::plan_malformed, "plan: step {} is a block within {} others; the limit is {}", i, depth,
                    kMaxBlockDepth - 1);
      uint32_t next = i + 1;
      for (const Body& body : block->bodies) {
        if (body.steps > end - next)
          return fail(ErrorCode::plan_malformed, "plan: step {} has a body of {} steps, and {} follow", i, body.steps,
                      end - next);
        LATHE_TRY(walk(next, next + body.steps, depth + 1));
        next += body.steps;
      }
      places_[i].end = next;
    }
    return {};
  }

  std::span<const Step> steps_;
  std::vector<StepPlace> places_;
};

}  // namespace

Result<std::vector<StepPlace>> find_places(std::span<const Step> steps) { return Nesting(steps).run(); }

}  // namespace lathe::plan
