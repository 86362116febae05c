// SPDX-License-Identifier: Apache-2.0
#include "passes/dequantize_sums.h"

#include <algorithm>

#include "passes/match.h"

namespace lathe {
namespace {

// So many products, whose factors range from -255 to 255, in each of `count` numbers that are added up in i32.
bool fits_i32(int64_t products, size_t count) {
  constexpr double kMostOfProduct = 255 * 255;
  return kMostOfProduct * static_cast<double>(products) * static_cast<double>(count) < 0x1p31;
}

// A product of 8-bit integers, and what is subtracted from its sums.
struct Sums {
  ir::Value* product = nullptr;
  int64_t products = 0;  // of each sum
  size_t axis = 0;       // its columns: of convolutions, the channels
  int64_t columns = 0;
  std::vector<ir::Value*> terms;
  std::vector<const ir::Node*> nodes;  // the subtractions
};

std::optional<Sums> sums_of(ir::Value* value) {
  Sums sums;
  while (value->has_single_use()) {
    const ir::Node* minus = made_by(value, ElementwiseOp::sub);
    if (!minus) break;
    if (!same_shape(minus->input(0), value)) return std::nullopt;
    sums.nodes.push_back(minus);
    sums.terms.push_back(minus->input(1));
    value = minus->input(0);
  }
  const ir::Node* node = value->producer();
  const bool is_product = node && (node->is(OpKind::matmul) || (node->is(OpKind::convolution) && !node->input(2))) &&
                          is_byte_integer(node->input(0)->dtype()) && value->dtype() == DType::i32;
  if (!is_product || !value->has_single_use() || value->rank() < 2) return std::nullopt;
  sums.product = value;
  sums.axis = node->is(OpKind::convolution) ? 1 : static_cast<size_t>(value->rank()) - 1;
  if (node->is(OpKind::matmul) && node->attrs<MatmulAttrs>().transpose_a) return std::nullopt;
  Expr products = node->is(OpKind::convolution) ? Expr(1) : node->input(0)->shape().back();
  if (node->is(OpKind::convolution))
    for (size_t d = 1; d < node->input(1)->shape().size(); ++d) products *= node->input(1)->shape()[d];
  sums.products = products.as_constant().value_or(INT64_MAX);
  const std::optional<int64_t> columns = value->shape()[sums.axis].as_constant();
  sums.columns = columns.value_or(0);
  return columns ? std::optional(std::move(sums)) : std::nullopt;
}

// Of a value that broadcasts to the sums: its extent along their columns.
Expr columns_of(const Sums& sums, const ir::Value* value) {
  const size_t behind = static_cast<size_t>(sums.product->rank()) - sums.axis, rank = value->shape().size();
  return rank < behind ? Expr(1) : value->shape()[rank - behind];
}

// A number for each column, of what holds that or one for all; null of what holds others.
ir::Value* by_columns(Rewrite& r, const Sums& sums, ir::Value* value) {
  const std::optional<int64_t> count = volume(value->shape()).as_constant();
  Ints dims(static_cast<size_t>(sums.product->rank()) - sums.axis, 1);
  dims[0] = sums.columns;
  if (count == 1 && sums.columns != 1)
    return r.mul(r.reshape(value, Ints{}), r.filled(1, value->dtype(), Dims(dims.begin(), dims.end())));
  if (count != sums.columns || columns_of(sums, value) != Expr(sums.columns)) return nullptr;
  dims[0] = -1;
  return value->shape().size() == dims.size() ? value : r.reshape(value, dims);
}

// The product of a number of each row and of each column; null where it is none.
ir::Value* by_rows(Rewrite& r, const Sums& sums, const ir::Value* term) {
  const ir::Node* product = made_by(term, ElementwiseOp::mul);
  if (!product) return nullptr;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    ir::Value* rows = product->input(i);
    if (rows->rank() != sums.product->rank() || columns_of(sums, rows) != Expr(1)) continue;
    if (ir::Value* factors = by_columns(r, sums, product->input(1 - i))) return r.mul(rows, factors);
  }
  return nullptr;
}

// All that is subtracted, as one zero point: rows first, as kernels take it. False where they do not take it, or where
// i32 may not hold it.
bool add_terms(Rewrite& r, const Sums& sums, ir::Value*& zero) {
  if (sums.terms.size() > 1 && !fits_i32(sums.products, sums.terms.size())) return false;
  ir::Value *rows = nullptr, *columns = nullptr;
  for (ir::Value* term : sums.terms) {
    if (ir::Value* each = by_columns(r, sums, term)) {
      columns = columns ? r.plus(columns, each) : each;
      continue;
    }
    if (rows) return false;
    rows = by_rows(r, sums, term);
    if (!rows) return false;
  }
  zero = rows && columns ? r.plus(rows, columns) : rows ? rows : columns;
  return true;
}

}  // namespace

Result<bool> dequantize_sums(Rewrite& r) {
  if (!r.context.arithmetic.weighted_products || r.node->attrs<ElementwiseAttrs>().op != ElementwiseOp::mul)
    return false;
  const ir::Node* cast = made_by(r.input(0), OpKind::cast);
  ir::Value* scale = r.input(1);
  if (!cast) cast = made_by(r.input(1), OpKind::cast), scale = r.input(0);
  if (!cast || cast->output()->dtype() != DType::f32 || !cast->output()->has_single_use()) return false;
  const std::optional<Sums> sums = sums_of(cast->input(0));
  if (!sums || !same_shape(sums->product, r.output())) return false;
  std::vector<ir::Value*> operands = {sums->product, by_columns(r, *sums, scale)};
  ir::Value* zero = nullptr;
  if (!operands[1] || !add_terms(r, *sums, zero)) return false;
  if (zero) operands.push_back(zero);
  r.absorb(cast);
  for (const ir::Node* node : sums->nodes) r.absorb(node);
  return r.finish(r.add(DequantizeAttrs{}, std::move(operands)));
}

Result<bool> join_zero_points(Rewrite& r) {
  if (!r.context.arithmetic.weighted_products || !made_by(r.input(0), ElementwiseOp::sub) ||
      !r.node->attrs<DequantizeAttrs>().blocks.empty())
    return false;
  std::optional<Sums> sums = sums_of(r.input(0));
  if (!sums) return false;
  if (r.input(2)) sums->terms.push_back(r.input(2));
  ir::Value* zero = nullptr;
  if (!add_terms(r, *sums, zero)) return false;
  for (const ir::Node* node : sums->nodes) r.absorb(node);
  return r.finish(r.add(r.node->attributes(), {sums->product, r.input(1), zero}));
}

}  // namespace lathe
