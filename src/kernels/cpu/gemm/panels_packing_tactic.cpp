// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/panels_packing_tactic.h"

namespace lathe::cpu::gemm {

Packing panels_packing(const Panels& panels, std::span<const KAxis> k, int64_t column_stride) {
  Packing packing{{panels.floats()}, {}};
  const int64_t whole = panels.n / panels.width;
  // `count` panels from the first one on.
  const auto add = [&](int64_t first, int64_t count) {
    const int64_t stride = panels.stride(first);
    PackingBox box{first * panels.width * column_stride, panels.offset(first), {count}, {}, {}};
    box.from_strides = {panels.width * column_stride};
    box.to_strides = {panels.width * panels.k};
    for (const KAxis& axis : k) {
      box.extents.push_back(axis.extent);
      box.from_strides.push_back(axis.from_stride);
      box.to_strides.push_back(axis.rows * stride);
    }
    box.extents.push_back(panels.columns(first));
    box.from_strides.push_back(column_stride);
    box.to_strides.push_back(1);
    packing.boxes.push_back(std::move(box));
  };
  if (whole > 0) add(0, whole);
  if (whole < panels.count()) add(whole, 1);
  return packing;
}

Packing pairs_packing(const Panels& panels, int64_t k, int64_t k_stride, int64_t column_stride) {
  Packing packing{{2 * panels.floats()}, {}};
  const auto add = [&](const KAxis& rows, int64_t first, int64_t count) {
    for (PackingBox& box : panels_packing(panels, {&rows, 1}, column_stride).boxes) {
      box.from += 2 * first * k_stride;
      box.to = 2 * (box.to + first * box.to_strides[1]);
      for (int64_t& stride : box.to_strides) stride *= 2;
      box.extents.push_back(count);
      box.from_strides.push_back(k_stride);
      box.to_strides.push_back(1);
      packing.boxes.push_back(std::move(box));
    }
  };
  if (k >= 2) add({k / 2, 2 * k_stride, 1}, 0, 2);
  if (k % 2 == 1) add({1, 2 * k_stride, 1}, k / 2, 1);
  return packing;
}

Packing matrices_packing(const Panels& panels, int64_t k, int64_t k_stride, int64_t column_stride, int64_t matrices,
                         bool in_pairs) {
  const KAxis axis{k, k_stride, 1};
  const Packing one =
      in_pairs ? pairs_packing(panels, k, k_stride, column_stride) : panels_packing(panels, {&axis, 1}, column_stride);
  Packing all = one.repeated(matrices, k * panels.n, one.dims[0]);
  all.dims = {one.dims[0] * matrices};
  return all;
}

Result<Packed> packed_pairs(const Operand& weights, Packing packing) {
  CastAttrs to_bf16;
  to_bf16.to = DType::bf16;
  const Known known{*weights.weights, weights.derivation};
  LATHE_ASSIGN(const std::vector<Known> rounded, compute(to_bf16, {&known, 1}, 1));
  LATHE_ASSIGN(Tensor packed, packing.apply(rounded[0].content));
  return Packed(std::move(packed), WeightsOrder{std::move(packing), rounded[0]});
}

}  // namespace lathe::cpu::gemm
