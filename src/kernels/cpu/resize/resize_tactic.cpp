// SPDX-License-Identifier: Apache-2.0
// Separable resizing: kernel "resize".
#include <bit>

#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/resize/samples.h"
#include "kernels/resize_tables_tactic.h"

namespace lathe::cpu {
namespace {

// The rule has the numbers of the op's enumerations.
template <class Ours, class Ops>
constexpr bool same(Ours ours, Ops ops) {
  return static_cast<int64_t>(ours) == static_cast<int64_t>(ops);
}
static_assert(same(SampleRule::Mode::cubic, ResizeMode::cubic));
static_assert(same(SampleRule::Coordinates::tf_half_pixel_for_nn, CoordinateMode::tf_half_pixel_for_nn));
static_assert(same(SampleRule::Coordinates::align_corners, CoordinateMode::align_corners));
static_assert(same(SampleRule::Nearest::ceil, NearestMode::ceil));

bool is_given(const Problem& problem, size_t i) { return problem.inputs.size() > i && !problem.inputs[i].omitted; }

// Tables that are made while running: the taps of one output element must be few, whatever the extents.
std::optional<std::string> refuse_samples(const Problem& problem) {
  const auto& attrs = problem.attrs<ResizeAttrs>();
  if (attrs.coordinates == CoordinateMode::tf_crop_and_resize) return "cropping";
  if (attrs.aspect != AspectPolicy::stretch) return "an aspect policy";
  if (attrs.antialias && attrs.mode != ResizeMode::nearest) return "antialiasing between dynamic dimensions";
  if (!is_given(problem, 3) && !problem.inputs[2].constant) return "its scales are not constant";
  if (attrs.mode == ResizeMode::cubic && resized_dims(problem).size() > 4) return "cubic in too many dimensions";
  return std::nullopt;
}

Emission emit_samples(const Problem& problem) {
  const auto& attrs = problem.attrs<ResizeAttrs>();
  Emission emission;
  emission.kernel = "resize";
  emission.inputs = {{StepInput::input, 0}};
  const auto bits = [](double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); };
  int64_t axes = 0;
  std::vector<int64_t> scales;
  for (const size_t d : resized_dims(problem)) {
    axes |= int64_t{1} << d;
    scales.push_back(is_given(problem, 3) ? 0
                                          : bits(problem.inputs[2].constant->at_double(
                                                static_cast<int64_t>(resize_position(problem, d)))));
  }
  emission.params = {axes,
                     static_cast<int64_t>(attrs.mode),
                     static_cast<int64_t>(attrs.coordinates),
                     static_cast<int64_t>(attrs.nearest),
                     attrs.exclude_outside,
                     bits(attrs.cubic_a)};
  emission.params.insert(emission.params.end(), scales.begin(), scales.end());
  return emission;
}

class ResizeTactic final : public Tactic {
 public:
  std::string_view name() const override { return "resize"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::resize)) return "not a resize";
    if (problem.inputs[0].dtype != DType::f32) return fmt::format("its input is {}", name_of(problem.inputs[0].dtype));
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    return refuse_resize_tables(problem) ? refuse_samples(problem) : std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    if (refuse_resize_tables(problem)) return emit_samples(problem);
    Emission emission;
    emission.kernel = "resize";
    emission.inputs = {{StepInput::input, 0}};
    int64_t axes = 0;
    for (const size_t d : resized_dims(problem)) {
      axes |= int64_t{1} << d;
      LATHE_ASSIGN(ResizeTables tables, resize_tables(problem, d));
      for (Tensor* table : {&tables.index, &tables.weights}) {
        emission.inputs.push_back({StepInput::packed, emission.packed.size()});
        emission.packed.push_back(std::move(*table));
      }
    }
    emission.params = {axes};
    return emission;
  }
};

}  // namespace

const Tactic& resize_tactic() {
  static const ResizeTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
