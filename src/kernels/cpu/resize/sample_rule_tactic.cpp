// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/resize/sample_rule_tactic.h"

namespace lathe::cpu {
namespace {

// The rule has the numbers of the op's enumerations.
template <class Ours, class Ops>
constexpr bool same(Ours ours, Ops ops) {
  return static_cast<int64_t>(ours) == static_cast<int64_t>(ops);
}
static_assert(same(SampleRule::Mode::cubic, ResizeMode::cubic));
static_assert(same(SampleRule::Coordinates::align_corners, CoordinateMode::align_corners));
static_assert(same(SampleRule::Coordinates::tf_crop_and_resize, CoordinateMode::tf_crop_and_resize));
static_assert(same(SampleRule::Coordinates::tf_half_pixel_for_nn, CoordinateMode::tf_half_pixel_for_nn));
static_assert(same(SampleRule::Nearest::ceil, NearestMode::ceil));

}  // namespace

SampleRule sample_rule(const ResizeAttrs& attrs) {
  return {static_cast<SampleRule::Mode>(attrs.mode),
          static_cast<SampleRule::Coordinates>(attrs.coordinates),
          static_cast<SampleRule::Nearest>(attrs.nearest),
          attrs.exclude_outside,
          attrs.antialias && attrs.mode != ResizeMode::nearest,
          attrs.cubic_a};
}

}  // namespace lathe::cpu
