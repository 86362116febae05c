// SPDX-License-Identifier: Apache-2.0
// Kernel "roi_align".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/roi_align/roi_align.h"

namespace lathe::cpu {
namespace {

bool is_contiguous(const Operand& x, size_t dim) { return x.strides[dim] == Expr(1) || x.dims[dim] == Expr(1); }

}  // namespace

Matched match_roi_align(const Problem& problem) {
  if (!problem.is(OpKind::roi_align)) return refuse("not a region alignment");
  const DType type = problem.inputs[0].dtype;
  if (type != DType::f32 && type != DType::f64)
    return refuse(fmt::format("its input is {}, this kernel computes in f32 and f64", name_of(type)));
  if (!is_contiguous(problem.inputs[0], 1) && !is_contiguous(problem.inputs[0], 3))
    return refuse("neither channels nor columns of its input are contiguous");
  const auto& attrs = problem.attrs<RoiAlignAttrs>();
  if (attrs.sampling_ratio > RoiAlignParams::kMaxSamples) return refuse("more than 65536 samples of a bin");
  const RoiAlignParams params{attrs.mode == PoolingOp::max, attrs.sampling_ratio, attrs.spatial_scale,
                              attrs.half_pixel};
  return match_root(problem, params, {0, 1, 2});
}

}  // namespace lathe::cpu
