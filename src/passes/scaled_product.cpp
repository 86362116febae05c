// SPDX-License-Identifier: Apache-2.0
#include "passes/scaled_product.h"

#include <algorithm>

#include "base/divide.h"
#include "passes/linear.h"
#include "passes/match.h"
#include "passes/quantization.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

constexpr int64_t kColumns = 128;  // that share a scale in kernels, where more than one do
constexpr int64_t kFewRows = 64;   // fewer are multiplied as floats of 16 bits by weights that stream (decision 0115)

bool has_blocks(const Node& dequantize) { return !dequantize.attrs<DequantizeAttrs>().blocks.empty(); }

// How many elements along a dimension share a scale; nothing = all.
std::optional<int64_t> block_along(const Node& dequantize, size_t dim) {
  const int64_t block = dequantize.attrs<DequantizeAttrs>().blocks[dim];
  const std::optional<int64_t> extent = dequantize.input(0)->shape()[dim].as_constant();
  return block == 0 || (extent && block >= *extent) ? std::nullopt : std::optional(block);
}

std::string refusal_of_factor(const Node& factor) {
  const DType levels = factor.input(0)->dtype();
  if (!is_factor_float8(levels)) return fmt::format("no kernel multiplies {} in blocks", name_of(levels));
  if (factor.input(2) && !all_equal(factor.input(2), 0)) return "an operand has a zero point";
  const Value* scale = factor.input(1);
  if (has_blocks(factor) && is_storage_only(scale->dtype()) && !scale->constant())
    return "its scales are computed, and in a type to store tensors in";
  return "";
}

// Of dequantised 8-bit floats.
std::string refusal_of_factors(const Node& matmul, const Node& x, const Node& w) {
  const auto& attrs = matmul.attrs<MatmulAttrs>();
  if (x.input(0)->dtype() != w.input(0)->dtype()) return "its operands are of two types";
  if (x.output()->rank() < 2) return "an operand is a vector";
  if (w.output()->rank() != 2) return "the weights are no matrix";
  if (attrs.transpose_a) return "the activations are transposed";
  if (!w.input(0)->constant() && !attrs.transpose_b)
    return "both operands are computed, and do not run along K in memory";
  for (size_t d = 0; has_blocks(x) && d + 1 < x.output()->shape().size(); ++d)
    if (block_along(x, d) != 1 && x.output()->shape()[d] != Expr(1)) return "rows of the activations share scales";
  return "";
}

bool has_few_rows(const Node& x, std::span<const Range> ranges) {
  const Shape& shape = x.output()->shape();
  return volume({shape.begin(), shape.end() - 1}).range(ranges).max < kFewRows;
}

// The length of the blocks, where it is one that the target scales.
std::string find_block(const PassContext& context, ScaledProduct& p) {
  const auto last = static_cast<size_t>(p.x->output()->rank()) - 1;
  const std::optional<int64_t> of_x = p.scales_x ? block_along(*p.x, last) : std::nullopt;
  const std::optional<int64_t> of_w = p.scales_w ? block_along(*p.w, p.k_dim) : std::nullopt;
  if (p.scales_x && p.scales_w && of_x != of_w) return "its operands have blocks of two lengths along K";
  const int64_t least = context.arithmetic.float8_block;
  const std::optional<int64_t> all = p.w->input(0)->shape()[p.k_dim].as_constant();
  if (!of_x && !of_w && !all) return "the length of its sums is open";
  p.block = of_x ? *of_x : of_w ? *of_w : round_up(std::max<int64_t>(*all, 1), least);
  if (p.block % least == 0) return "";
  return fmt::format(
      "its blocks of {} along K are no multiple of {}, and scaling the sums of each takes as long as floats do",
      p.block, least);
}

bool has_constant_weights(const ScaledProduct& p) { return p.w->input(0)->constant() && p.w->input(1)->constant(); }

// How many columns share a scale of computed weights, all of them perhaps; nothing where that is not known.
std::optional<int64_t> shared_columns(const ScaledProduct& p) {
  if (const std::optional<int64_t> columns = block_along(*p.w, 1 - p.k_dim)) return columns;
  const std::optional<int64_t> all = p.w->input(0)->shape()[1 - p.k_dim].as_constant();
  return all ? std::optional(round_up(std::max<int64_t>(*all, 1), kColumns)) : std::nullopt;
}

// Scales of computed weights are taken as they are.
std::string refusal_of_columns(const ScaledProduct& p) {
  if (!p.scales_w || has_constant_weights(p)) return "";
  const std::optional<int64_t> columns = shared_columns(p);
  if (columns && (*columns == 1 || *columns % kColumns == 0)) return "";
  return fmt::format("the weights' scales are computed, and not those of 1 or of {} columns", kColumns);
}

std::string find_after(const ScaledProduct& p, std::vector<double>& after) {
  after.clear();
  if (!p.scales_x) {
    const std::optional<Dequantized> x = dequantized(p.x->output());
    if (!x || x->scale->volume() != 1) return "the activations have scales neither of the tensor nor of blocks";
    after = {x->scale->at_double(0)};
  }
  if (p.scales_w) return "";
  const std::optional<Dequantized> w = dequantized(p.w->output());
  const std::optional<std::vector<double>> scales =
      w ? along_axis(w->node->input(1), w->integers, 1 - p.k_dim) : std::nullopt;
  if (!w || (!scales && w->scale->volume() != 1))
    return "the weights have scales neither of output channels nor of blocks";
  std::vector<double> each = scales ? *scales : std::vector<double>{w->scale->at_double(0)};
  for (double& scale : each) scale *= after.empty() ? 1 : after[0];
  after = std::move(each);
  return "";
}

std::string find_product(const Node& matmul, std::span<const Range> ranges, const PassContext& context,
                         ScaledProduct& p) {
  p.x = made_by(matmul.input(0), OpKind::dequantize), p.w = made_by(matmul.input(1), OpKind::dequantize);
  for (const Node* factor : {p.x, p.w})
    if (std::string why = refusal_of_factor(*factor); !why.empty()) return why;
  if (!context.arithmetic.float8_block) return "the target multiplies no 8-bit floats in blocks";
  if (std::string why = refusal_of_factors(matmul, *p.x, *p.w); !why.empty()) return why;
  if (p.w->input(0)->constant() && matmul.output()->dtype() != DType::f32 && has_few_rows(*p.x, ranges))
    return fmt::format("it has fewer than {} rows of {}, for which packed weights are streamed and multiplied as such",
                       kFewRows, name_of(matmul.output()->dtype()));
  p.scales_x = has_blocks(*p.x), p.scales_w = has_blocks(*p.w);
  p.k_dim = matmul.attrs<MatmulAttrs>().transpose_b ? 1 : 0;
  if (std::string why = find_block(context, p); !why.empty()) return why;
  if (std::string why = refusal_of_columns(p); !why.empty()) return why;
  return find_after(p, p.after);
}

struct ColumnScales {
  Value* scales = nullptr;  // of columns, then blocks of K
  int64_t columns = 1;      // that share one
};

// Of constant weights: as few scales as say the same.
Result<ColumnScales> constant_scales(Rewrite& r, const ScaledProduct& p) {
  const Tensor& scales = *p.w->input(1)->constant();
  const int64_t n = p.w->input(0)->constant()->dims()[1 - p.k_dim], blocks = scales.dims()[p.k_dim];
  const int64_t shared = block_along(*p.w, 1 - p.k_dim).value_or(std::max<int64_t>(n, 1));
  const std::vector<double> values = to_doubles(scales);
  const auto at = [&](int64_t column, int64_t block) {
    const int64_t line = column / shared;
    return static_cast<float>(
        values[static_cast<size_t>(p.k_dim == 1 ? line * blocks + block : block * scales.dims()[1] + line)]);
  };
  bool is_shared = true;
  for (int64_t column = 0; column < n; ++column)
    for (int64_t block = 0; block < blocks; ++block)
      is_shared &= at(column, block) == at(column / kColumns * kColumns, block);
  const int64_t columns = is_shared ? kColumns : 1;
  LATHE_ASSIGN(Tensor own, Tensor::allocate(DType::f32, {ceil_div(n, columns), blocks}));
  for (int64_t i = 0; i < own.volume(); ++i) own.mutable_as<float>()[i] = at(i / blocks * columns, i % blocks);
  return ColumnScales{r.constant(std::move(own)), columns};
}

Result<ColumnScales> column_scales(Rewrite& r, const ScaledProduct& p) {
  if (has_constant_weights(p)) return constant_scales(r, p);
  Value* scales = r.cast(p.w->input(1), DType::f32);
  if (p.k_dim == 0) scales = r.transpose(scales, {1, 0});
  return ColumnScales{scales, *shared_columns(p)};
}

}  // namespace

bool is_scaled_by_blocks(const Node& matmul) {
  if (!matmul.is(OpKind::matmul)) return false;
  const Node *x = made_by(matmul.input(0), OpKind::dequantize), *w = made_by(matmul.input(1), OpKind::dequantize);
  return x && w && (has_blocks(*x) || has_blocks(*w));
}

std::optional<ScaledProduct> scaled_product(const Node& matmul, std::span<const Range> ranges,
                                            const PassContext& context, std::string* why) {
  if (!is_scaled_by_blocks(matmul)) return std::nullopt;
  ScaledProduct product;
  std::string reason = find_product(matmul, ranges, context, product);
  if (reason.empty()) return product;
  if (why) *why = std::move(reason);
  return std::nullopt;
}

Result<Value*> scaled_sums(Rewrite& r, const ScaledProduct& p) {
  r.absorb(p.x);
  r.absorb(p.w);
  Value* w = p.w->input(0);
  if (p.k_dim == 0) w = r.transpose(w, {1, 0});
  ScaledMatmulAttrs attrs;
  attrs.block = p.block;
  std::vector<Value*> inputs = {p.x->input(0), w};
  if (p.scales_x || p.scales_w) inputs.push_back(p.scales_x ? r.cast(p.x->input(1), DType::f32) : nullptr);
  if (p.scales_w) {
    LATHE_ASSIGN(const ColumnScales columns, column_scales(r, p));
    attrs.columns = columns.columns;
    inputs.push_back(columns.scales);
  }
  Value* sums = r.add(attrs, std::move(inputs));
  if (p.after.empty()) return sums;
  const int rank = r.output()->rank();
  const auto last = static_cast<size_t>(rank) - 1;
  return r.mul(sums, p.after.size() == 1 ? r.scalar(p.after[0], DType::f32)
                                         : r.constant(channel_tensor(DType::f32, p.after, rank, last)));
}

}  // namespace lathe
