// SPDX-License-Identifier: Apache-2.0
// The expressions over sizes that a plugin makes of its results.
#pragma once

#include <memory>
#include <vector>

#include "NvInferRuntime.h"
#include "base/result.h"
#include "shape/expr.h"

namespace lathe::plugin {

// A size that the plugin finds out: the output that holds it, what to tune for, and what it cannot exceed.
struct DeclaredSize {
  size_t output = 0;
  Expr opt, upper;
};

// Size i that is declared is symbol `first_size` + i. What it gives to a plugin lives as long as itself.
class ExprBuilder final : public nvinfer1::IExprBuilder, public nvinfer1::apiv::VExprBuilder {
 public:
  explicit ExprBuilder(SymbolId first_size);
  ~ExprBuilder() noexcept override;

  const nvinfer1::IDimensionExpr* constant(int64_t value) noexcept override { return add(value); }
  const nvinfer1::IDimensionExpr* operation(nvinfer1::DimensionOperation op, const nvinfer1::IDimensionExpr& first,
                                            const nvinfer1::IDimensionExpr& second) noexcept override;
  const nvinfer1::IDimensionExpr* declareSizeTensor(int32_t outputIndex, const nvinfer1::IDimensionExpr& opt,
                                                    const nvinfer1::IDimensionExpr& upper) noexcept override;

  // As a plugin gets it; null when out of memory.
  const nvinfer1::IDimensionExpr* add(Expr expr) noexcept;
  nvinfer1::DimsExprs add(const Shape& shape) noexcept;
  // Null for what is not from this builder.
  const Expr* find(const nvinfer1::IDimensionExpr* expr) const;
  const std::vector<DeclaredSize>& sizes() const { return sizes_; }

 private:
  class Node;
  SymbolId first_size_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<DeclaredSize> sizes_;
};

}  // namespace lathe::plugin
