// SPDX-License-Identifier: Apache-2.0
#include "passes/stays_packed.h"

#include <algorithm>
#include <cmath>

#include "base/encoding.h"
#include "passes/gathered_matrices.h"
#include "passes/match.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

constexpr int64_t kRun = 16;  // neighbours along K that kernels scale alike

bool is_packable(DType dtype) {
  return dtype == DType::i4 || dtype == DType::u4 || is_byte_integer(dtype) || is_weight_float(dtype);
}

bool is_product_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

// Of 8-bit floats each code is asked about once.
template <class F>
bool all_of_elements(const Tensor& tensor, const F& is_good) {
  if (is_storage_only(tensor.dtype()) && bits_of(tensor.dtype()) == 8) {
    bool good[256];
    for (int code = 0; code < 256; ++code) good[code] = is_good(decode(tensor.dtype(), static_cast<uint8_t>(code)));
    const auto* codes = static_cast<const uint8_t*>(tensor.data());
    return std::all_of(codes, codes + tensor.volume(), [&](uint8_t code) { return good[code]; });
  }
  for (int64_t i = 0; i < tensor.volume(); ++i)
    if (!is_good(tensor.at_double(i))) return false;
  return true;
}

// Kernels widen 8-bit floats by shifting their bits, which turns NaN and infinity into numbers.
bool has_numbers_alone(const Tensor& levels) {
  return !is_factor_float8(levels.dtype()) || all_of_elements(levels, [](double x) { return std::isfinite(x); });
}

bool is_scale(DType dtype) { return is_product_float(dtype) || dtype == DType::f8e8m0 || dtype == DType::f8e4m3fn; }

bool fits_half(double scale) {
  constexpr double kLeast = 0x1p-24, kLargest = 65504;
  return scale == 0 || (std::abs(scale) >= kLeast && std::abs(scale) <= kLargest);
}

// Kernels hold scales in the type of their products: those of MX formats, and of f32, reach beyond f16.
bool fit_products(const Tensor& scales, DType product) {
  const bool may_exceed = is_storage_only(scales.dtype()) || (product == DType::f16 && scales.dtype() != DType::f16);
  return !may_exceed || all_of_elements(scales, fits_half);
}

// Whether the operands are constant matrices, those of several experts perhaps, or broadcast to such.
bool has_known_scales(const Node& node) {
  const Tensor* levels = node.input(0)->constant();
  if (!levels || levels->rank() < 2 || levels->rank() > 3 || levels->volume() == 0 || !is_packable(levels->dtype()))
    return false;
  for (size_t i = 1; i < node.num_inputs(); ++i)
    if (node.input(i) && (!node.input(i)->constant() || node.input(i)->rank() > levels->rank())) return false;
  if (is_weight_float(levels->dtype()) && node.input(2) && !all_equal(node.input(2), 0)) return false;
  return is_scale(node.input(1)->dtype());
}

bool fits_kernels(const Node& node, size_t k_dim) {
  const int64_t k = node.input(0)->constant()->dims()[k_dim];
  for (size_t i = 1; i < node.num_inputs(); ++i) {
    if (!node.input(i)) continue;
    const int64_t block = blocks_of(node, i)[k_dim];
    if (block < k && block % kRun != 0) return false;
  }
  return true;
}

// Whether it is a tensor of 8 bits as floats, or was rounded to them: of a network that was quantised as a whole, whose
// products are those of integers or, of many rows, of floats.
bool has_levels(const Value* x) {
  if (made_by(x, OpKind::dequantize)) return true;
  const Node* scaled = made_by(x, ElementwiseOp::mul);
  if (scaled && (made_by(scaled->input(0), UnaryOp::round_e4m3) || made_by(scaled->input(0), UnaryOp::round_e5m2)))
    return true;
  const Node* clip = scaled ? made_by(scaled->input(0), ActivationOp::clip) : nullptr;
  return clip && made_by(clip->input(0), UnaryOp::round);
}

// Whether scales differ along K, so that no product multiplies levels as they are.
bool is_scaled_along_k(const Node& node, size_t k_dim) {
  return blocks_of(node, 1)[k_dim] < node.input(0)->constant()->dims()[k_dim];
}

// Kernels of f32 alone widen 8-bit floats nearly as fast as they read floats of four times the size.
bool is_second_factor(const Node& node, const ir::Use& use, size_t k_dim, const Arithmetic& arithmetic) {
  const Node& matmul = *use.node;
  const DType levels = node.input(0)->dtype();
  const bool is_for_any =
      is_packed(levels) || is_scaled_along_k(node, k_dim) || (is_factor_float8(levels) && !arithmetic.narrow_floats);
  if (!is_for_any && has_levels(matmul.input(0))) return false;
  return use.index == 1 && !matmul.input(0)->content() && matmul.input(0)->rank() > 0 &&
         is_product_float(matmul.output()->dtype());
}

// Gathered for products of single rows, which recognize_experts makes products of experts.
bool is_gathered_for_rows(const Node& node, const Node& gather) {
  const Value* taken = gather.output();
  if (!takes_matrices(gather) || taken->is_graph_output() || taken->uses().empty()) return false;
  return std::ranges::all_of(taken->uses(), [&](const ir::Use& use) {
    const std::optional<RowByMatrices> by =
        use.node->is(OpKind::matmul) ? row_by_matrices(*use.node, use.index) : std::nullopt;
    return by && fits_kernels(node, by->transposed ? 2 : 1);
  });
}

// Kernels of GPUs take no single row without dimensions.
bool is_of_experts_alone(const Node& node) {
  const Value* value = node.output();
  if (value->is_graph_output() || value->uses().empty() || !is_product_float(value->dtype())) return false;
  return std::ranges::all_of(value->uses(), [&](const ir::Use& use) {
    if (!use.node->is(OpKind::expert_matmul)) return use.index == 0 && is_gathered_for_rows(node, *use.node);
    return use.index == 1 && !use.node->input(0)->content() && use.node->output()->rank() > 1 &&
           fits_kernels(node, use.node->attrs<ExpertMatmulAttrs>().transpose_w ? 2 : 1);
  });
}

bool is_multiplied_alone(const Node& node, const Value* value, bool is_transposed, const Arithmetic& arithmetic) {
  if (value->is_graph_output() || value->uses().empty() || !is_product_float(value->dtype())) return false;
  return std::ranges::all_of(value->uses(), [&](const ir::Use& use) {
    if (use.node->is(OpKind::matmul)) {
      const size_t k_dim = use.node->attrs<MatmulAttrs>().transpose_b == is_transposed ? 0 : 1;
      return is_second_factor(node, use, k_dim, arithmetic) && fits_kernels(node, k_dim);
    }
    if (use.node->is(OpKind::transpose)) {
      const bool swaps =
          use.node->output()->shape().size() == 2 && use.node->attrs<TransposeAttrs>().perm != Ints{0, 1};
      return is_multiplied_alone(node, use.node->output(), is_transposed != swaps, arithmetic);
    }
    return use.node->is(OpKind::cast) && is_multiplied_alone(node, use.node->output(), is_transposed, arithmetic);
  });
}

}  // namespace

bool stays_packed(const Node& node, const Arithmetic& arithmetic) {
  return arithmetic.packed_weights && node.is(OpKind::dequantize) && has_known_scales(node) &&
         (node.input(0)->rank() == 3 ? is_of_experts_alone(node)
                                     : is_multiplied_alone(node, node.output(), false, arithmetic)) &&
         has_numbers_alone(*node.input(0)->constant()) &&
         fit_products(*node.input(1)->constant(), node.output()->dtype());
}

Dims blocks_of(const Node& dequantize, size_t operand) {
  const Dims& dims = dequantize.input(0)->constant()->dims();
  const Dims& have = dequantize.input(operand)->constant()->dims();
  const Ints& blocks = dequantize.attrs<DequantizeAttrs>().blocks;
  Dims result = dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!blocks.empty()) {
      if (blocks[d] > 0) result[d] = std::min(blocks[d], dims[d]);
    } else if (const size_t lead = dims.size() - have.size(); d >= lead && have[d - lead] != 1) {
      result[d] = 1;
    }
  }
  return result;
}

}  // namespace lathe
