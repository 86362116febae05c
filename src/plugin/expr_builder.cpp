// SPDX-License-Identifier: Apache-2.0
#include "plugin/expr_builder.h"

#include <algorithm>

namespace lathe::plugin {

namespace nv = nvinfer1;

class ExprBuilder::Node final : public nv::IDimensionExpr, public nv::apiv::VDimensionExpr {
 public:
  Node(Expr expr, SymbolId first_size) : expr_(std::move(expr)), first_size_(first_size) { mImpl = this; }
  ~Node() noexcept override = default;

  bool isConstant() const noexcept override { return expr_.is_constant(); }
  int64_t getConstantValue() const noexcept override { return expr_.as_constant().value_or(INT64_MIN); }
  bool isSizeTensor() const noexcept override {
    const std::optional<SymbolId> symbol = expr_.as_symbol();
    return symbol && *symbol >= first_size_;
  }
  const Expr& expr() const { return expr_; }

 private:
  Expr expr_;
  SymbolId first_size_;
};

ExprBuilder::ExprBuilder(SymbolId first_size) : first_size_(first_size) { mImpl = this; }
ExprBuilder::~ExprBuilder() noexcept = default;

const nv::IDimensionExpr* ExprBuilder::add(Expr expr) noexcept {
  try {
    return nodes_.emplace_back(std::make_unique<Node>(std::move(expr), first_size_)).get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

nv::DimsExprs ExprBuilder::add(const Shape& shape) noexcept {
  nv::DimsExprs dims{};
  dims.nbDims = static_cast<int32_t>(shape.size());
  for (size_t i = 0; i < shape.size() && i < nv::Dims::MAX_DIMS; ++i) dims.d[i] = add(shape[i]);
  return dims;
}

const Expr* ExprBuilder::find(const nv::IDimensionExpr* expr) const {
  const auto node = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& n) { return n.get() == expr; });
  return node == nodes_.end() ? nullptr : &(*node)->expr();
}

const nv::IDimensionExpr* ExprBuilder::operation(nv::DimensionOperation op, const nv::IDimensionExpr& first,
                                                 const nv::IDimensionExpr& second) noexcept {
  try {
    const Expr* const left = find(&first);
    const Expr* const right = find(&second);
    if (!left || !right) return nullptr;
    const Expr a = *left, b = *right;
    const auto checked = [&](const Expr& e) { return e.is_valid() ? add(e) : nullptr; };
    switch (op) {
      case nv::DimensionOperation::kSUM:
        return checked(a + b);
      case nv::DimensionOperation::kPROD:
        return checked(a * b);
      case nv::DimensionOperation::kMAX:
        return checked(max(a, b));
      case nv::DimensionOperation::kMIN:
        return checked(min(a, b));
      case nv::DimensionOperation::kSUB:
        return checked(a - b);
      case nv::DimensionOperation::kEQUAL:  // integers that differ do so by 1 at least
        return checked(Expr(1) - min(Expr(1), max(a - b, b - a)));
      case nv::DimensionOperation::kLESS:
        return checked(min(Expr(1), max(Expr(0), b - a)));
      case nv::DimensionOperation::kFLOOR_DIV:
        return b == Expr(0) ? nullptr : checked(floordiv(a, b));
      case nv::DimensionOperation::kCEIL_DIV:
        return b == Expr(0) ? nullptr : checked(ceildiv(a, b));
    }
  } catch (const std::bad_alloc&) {  // the plugin sees that there is none
  }
  return nullptr;
}

const nv::IDimensionExpr* ExprBuilder::declareSizeTensor(int32_t outputIndex, const nv::IDimensionExpr& opt,
                                                         const nv::IDimensionExpr& upper) noexcept {
  try {
    const Expr* const best = find(&opt);
    const Expr* const most = find(&upper);
    if (outputIndex < 0 || !best || !most) return nullptr;
    for (const Expr* bound : {best, most}) {
      std::vector<SymbolId> used;
      bound->collect_symbols(used);
      if (!used.empty() && used.back() >= first_size_) return nullptr;  // known only while running
    }
    const auto output = static_cast<size_t>(outputIndex);
    const auto known =
        std::find_if(sizes_.begin(), sizes_.end(), [&](const DeclaredSize& size) { return size.output == output; });
    const auto index = static_cast<SymbolId>(known - sizes_.begin());
    if (known == sizes_.end()) sizes_.push_back({output, *best, *most});
    return add(Expr::symbol(first_size_ + index));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace lathe::plugin
