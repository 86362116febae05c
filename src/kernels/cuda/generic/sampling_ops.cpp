// SPDX-License-Identifier: Apache-2.0
// Regions of images, and random numbers.
#include "kernels/cuda/generic/op_source.h"
#include "ops/random_range.h"

namespace lathe::cuda {
namespace {

Result<Emission> emit_roi_align(const Problem& problem) {
  Emission emission;
  OpSource source("generic/roi_align.cuh", problem, emission);
  const std::string x = source.input(0), regions = source.input(1), images = source.input(2), out = source.output(0);
  source.finish(fmt::format("roi_align<Attributes, {}>({}, {}, {}, {});", unit_dim(problem.inputs[0]) == 1, x, regions,
                            images, out),
                volume(problem.outputs[0].dims));
  return emission;
}

Result<Emission> emit_random(const Problem& problem) {
  const auto& attrs = problem.attrs<RandomAttrs>();
  Emission emission;
  OpSource source("generic/random.cuh", problem, emission);
  const std::string seed = source.input(1), out = source.output(0);
  source.finish(fmt::format("random<Attributes, {}>({}, {}, {});", random_digits(attrs.dtype), seed,
                            double_text(last_in_range(attrs)), out),
                volume(problem.outputs[0].dims));
  return emission;
}

}  // namespace

std::span<const GenericOp> sampling_ops() {
  static constexpr GenericOp kOps[] = {
      {OpKind::roi_align, emit_roi_align},
      {OpKind::random, emit_random},
  };
  return kOps;
}

}  // namespace lathe::cuda
