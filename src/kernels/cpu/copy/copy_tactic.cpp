// SPDX-License-Identifier: Apache-2.0
// Regions that compute nothing, tensors of one number, diagonals, and images taken apart into blocks: kernel "copy".
#include <cstring>

#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

uint64_t bits_of(const void* element, DType type) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, size_of(type));
  return bits;
}

Matched match_op(const Problem& problem) {
  switch (problem.attributes->kind()) {
    case OpKind::fill: {
      const Tensor& value = problem.attrs<FillAttrs>().value;
      return match_root(
          problem,
          CopyParams{.mode = CopyMode::fill, .bits = value.defined() ? bits_of(value.data(), value.dtype()) : 0}, {});
    }
    case OpKind::eye_like: {
      const auto& attrs = problem.attrs<EyeLikeAttrs>();
      const uint64_t bits = dispatch(attrs.dtype, [&](auto zero) {
        const auto one = static_cast<decltype(zero)>(1);
        return bits_of(&one, attrs.dtype);
      });
      return match_root(problem, CopyParams{.mode = CopyMode::eye, .bits = bits, .k = attrs.k}, {0});
    }
    case OpKind::depth_to_space: {
      const auto& attrs = problem.attrs<DepthToSpaceAttrs>();
      const CopyMode mode = attrs.mode == DepthToSpaceMode::dcr ? CopyMode::to_pixels_dcr : CopyMode::to_pixels_crd;
      return match_root(problem, CopyParams{.mode = mode, .block = attrs.block}, {0});
    }
    case OpKind::bitcast:
    case OpKind::reshape:
      return match_root(problem, CopyParams{.mode = CopyMode::reshape}, {0});
    case OpKind::space_to_depth:
      return match_root(
          problem, CopyParams{.mode = CopyMode::to_channels, .block = problem.attrs<SpaceToDepthAttrs>().block}, {0});
    default:
      return refuse("not a plain copy");
  }
}

}  // namespace

Matched match_copy(const Problem& problem) {
  if (problem.attributes) return match_op(problem);
  if (!problem.is_copy()) return refuse("not a plain copy");
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  if (problem.operands[0].dtype != problem.outputs[0].dtype) return refuse("a copy that converts");
  Emission emission = emission_of(problem, CopyParams{}, {});
  emission.with_program = false;
  return match_one(std::move(emission), predicted_us(problem));
}

}  // namespace lathe::cpu
