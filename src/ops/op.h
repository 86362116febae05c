// SPDX-License-Identifier: Apache-2.0
// What an op is: arity, traits, a shape/type rule and a plain evaluation. The evaluation is the oracle of every
// kernel's test, constant folding, and the fallback that runs when no kernel fits. It is written to be obviously right.
#pragma once

#include <algorithm>
#include <functional>
#include <span>

#include "ops/attributes.h"
#include "shape/constraint.h"

namespace lathe {

enum Traits : uint32_t {
  kNoTraits = 0,
  kPointwise = 1 << 0,      // each output element depends on the input elements at its (broadcast) position only
  kHeavy = 1 << 1,          // worth a region of its own
  kReduction = 1 << 2,      // works on rows; reads more than it writes or normalises them
  kView = 1 << 3,           // the same elements in the same order under other dims
  kMovement = 1 << 4,       // copies elements, computes none
  kDataDependent = 1 << 5,  // output dims depend on input values, whatever is known about the input
  kFresh = 1 << 6,          // another result each time: never folded, never merged with its like
  kStored = 1 << 7,         // takes storage types (base/dtypes.def) by their bits, as views and movement do
  kConverts = 1 << 8,       // knows the numbers of storage types; other ops refuse such operands
  kControlFlow = 1 << 9,    // has no evaluation: its bodies (ir::Node::bodies) are run, once it has them
  kContraction = 1 << 10,   // sums products of its factors: the inputs that are never omitted
  // Of images: dimension 1 of input 0 and of the result is channels, those behind it are pixels.
  kPixels = 1 << 11,
  kStrided = 1 << 12,          // each result is made by strided copies of operands
  kCuts = 1 << 13,             // each result is what lies in a box of input 0
  kQuantization = 1 << 14,     // between numbers and their levels: x, scale, zero point?
  kAnyLayout = 1 << 15,        // its kernels read input 0 in any layout, where it stands alone
  kInPlaceEpilogue = 1 << 16,  // its kernels read an element of the epilogue's operands before they write there
  kNarrows = 1 << 17,          // may compute in f16 or bf16 where the application allows that
  kWidens = 1 << 18,           // computes with floats, in no less precision than the network says
  kUnchanged = 1 << 19,        // as views do, gives elements of operands: passes/match.h says which these are
  // Input 0 (1, 2, 3 and those behind it) says sizes, axes or positions alone: see says_sizes().
  kSizes0 = 1 << 20,
  kSizes1 = 1 << 21,
  kSizes2 = 1 << 22,
  kSizes3 = 1 << 23,
  kUpdates = 1 << 24,  // gives input 0 with parts replaced; its kernels know Problem::in_place
  kFloat8 = 1 << 25,   // multiplies factors of 8-bit floats (is_factor_float8()), and sums in f32
};

inline constexpr int kMany = INT32_MAX;

struct ValueType {
  DType dtype = DType::f32;
  Shape shape;
  int rank() const { return static_cast<int>(shape.size()); }
};

// Of numbers that may be known each by itself: one that is not is Expr::invalid().
inline bool any_known(const std::vector<Expr>& numbers) { return std::ranges::any_of(numbers, &Expr::is_valid); }
inline bool all_known(const std::vector<Expr>& numbers) { return std::ranges::all_of(numbers, &Expr::is_valid); }

// What a shape rule sees, and where it puts what it finds out. Its failures are errors of the user: they say which
// input is wrong, its shape, and what was expected.
class InferContext {
 public:
  struct Input {
    const ValueType* type = nullptr;              // null = omitted
    const Tensor* constant = nullptr;             // content, when known
    const std::vector<Expr>* elements = nullptr;  // as Output's (also when constant is set)
  };
  struct Output {
    ValueType type;
    // Integer content in row-major order, when the rule can state some of it; Expr::invalid() where it cannot.
    std::vector<Expr> elements;
    bool has_elements = false;
  };

  InferContext(const Attributes& attributes, std::span<const Input> inputs, size_t num_outputs,
               std::function<Expr(std::string_view what, size_t place)> new_symbol,
               const std::vector<Range>* ranges = nullptr, const std::vector<Constraint>* expansions = nullptr)
      : attributes_(attributes),
        inputs_(inputs),
        outputs_(num_outputs),
        new_symbol_(std::move(new_symbol)),
        ranges_(ranges),
        expansions_(expansions) {}

  template <class A>
  const A& attrs() const {
    return static_cast<const A&>(attributes_);
  }
  size_t num_inputs() const { return inputs_.size(); }
  size_t num_outputs() const { return outputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].type; }
  const ValueType& type(size_t i) const { return *inputs_[i].type; }
  const Shape& shape(size_t i) const { return inputs_[i].type->shape; }
  DType dtype(size_t i) const { return inputs_[i].type->dtype; }
  int rank(size_t i) const { return inputs_[i].type->rank(); }
  const Tensor* constant(size_t i) const { return has(i) ? inputs_[i].constant : nullptr; }
  // Integer contents, symbolic or not; null when unknown (then the rule uses new_symbol() for what depends on it).
  const std::vector<Expr>* elements(size_t i) const {
    const std::vector<Expr>* known = partial_elements(i);
    return known && all_known(*known) ? known : nullptr;
  }
  // The same where some are known; the others are Expr::invalid().
  const std::vector<Expr>* partial_elements(size_t i) const { return has(i) ? inputs_[i].elements : nullptr; }
  // Element e of them; nullopt where it is not known.
  std::optional<Expr> element(size_t i, size_t e) const {
    const std::vector<Expr>* known = partial_elements(i);
    return known && e < known->size() && (*known)[e].is_valid() ? std::optional((*known)[e]) : std::nullopt;
  }
  // All of them numbers, or nullopt.
  std::optional<Ints> constant_elements(size_t i) const;

  void set(size_t i, DType dtype, Shape shape) { outputs_[i].type = {dtype, std::move(shape)}; }
  // Where none of several is known, nothing is.
  void set_elements(size_t i, std::vector<Expr> elements) {
    outputs_[i].has_elements = elements.empty() || any_known(elements);
    outputs_[i].elements = outputs_[i].has_elements ? std::move(elements) : std::vector<Expr>();
  }
  // A dimension that only running can tell: a symbol of source `computed`, named after `what` and `place`. Each
  // dimension has a place of its own, say its axis: the rule may run again when more is known, and the symbol of axis 2
  // must not stand for axis 1 before that. In run_op() it is Expr::invalid() instead, and the evaluation allocates that
  // output.
  Expr new_symbol(std::string_view what, size_t place = 0) { return new_symbol_(what, place); }
  // Bounds of an expression, from what is known about its symbols.
  Range range(const Expr& expr) const { return expr.range(ranges()); }
  // Whether it is known that the first is the second or 1.
  bool expands(const Expr& from, const Expr& to) const;
  // What the rule relies on. False when it is proven not to hold: then the rule fails. What is not proven either way
  // becomes a constraint of the node. Once the profiles are known, it narrows symbols, or goes into the plan and is
  // checked when shapes are set.
  bool assume(Relation relation, const Expr& a, const Expr& b);
  bool assume_equal(const Expr& a, const Expr& b) { return assume(Relation::equal, a, b); }
  std::vector<Constraint>& constraints() { return constraints_; }

  // Of control flow, the types of what each body yields. A dimension that only running tells is Expr::invalid().
  using Results = std::vector<ValueType>;
  const std::vector<Results>& bodies() const { return bodies_; }
  void set_bodies(std::vector<Results> bodies) { bodies_ = std::move(bodies); }

  std::vector<Output>& outputs() { return outputs_; }

 private:
  const Attributes& attributes_;
  std::span<const Input> inputs_;
  std::vector<Output> outputs_;
  std::function<Expr(std::string_view, size_t)> new_symbol_;
  std::span<const Range> ranges() const { return ranges_ ? *ranges_ : std::span<const Range>(); }
  const std::vector<Range>* ranges_;           // of symbols; null = none is known
  const std::vector<Constraint>* expansions_;  // that are known to hold; null = none
  std::vector<Results> bodies_;
  std::vector<Constraint> constraints_;
};

// What an evaluation sees. Outputs whose dims the shape rule knew are allocated before the call; the others are made by
// the evaluation through allocate().
class EvalContext {
 public:
  EvalContext(const Attributes& attributes, std::span<const Tensor> inputs, std::span<Tensor> outputs,
              std::span<const ValueType> output_types)
      : attributes_(attributes), inputs_(inputs), outputs_(outputs), output_types_(output_types) {}

  template <class A>
  const A& attrs() const {
    return static_cast<const A&>(attributes_);
  }
  size_t num_inputs() const { return inputs_.size(); }
  size_t num_outputs() const { return outputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].defined(); }
  const Tensor& input(size_t i) const { return inputs_[i]; }
  Tensor& output(size_t i) { return outputs_[i]; }
  Result<> allocate(size_t i, Dims dims);  // output i with the inferred type and these dims

 private:
  const Attributes& attributes_;
  std::span<const Tensor> inputs_;
  std::span<Tensor> outputs_;
  std::span<const ValueType> output_types_;
};

struct OpInfo {
  OpKind kind;
  std::string_view name;
  int min_inputs, max_inputs, min_outputs, max_outputs;
  uint32_t traits;
  Result<> (*infer)(InferContext& context);  // called by infer_op()
  Result<> (*eval)(EvalContext& context);
};

// Whether the op sums products of that input's elements.
inline bool is_factor(const OpInfo& info, size_t input) {
  return (info.traits & kContraction) && input < static_cast<size_t>(info.min_inputs);
}

// Whether the op takes that input for sizes, axes or positions alone.
inline bool says_sizes(const OpInfo& info, size_t input) {
  return (info.traits & (kSizes0 << std::min<size_t>(input, 3))) != 0;
}

// A convolution or deconvolution: input 2 is the bias of each channel.
inline bool is_convolution(const OpInfo& info) { return (info.traits & kContraction) && (info.traits & kPixels); }

// The shape rule, after the types that the op does not take.
Result<> infer_op(const OpInfo& info, InferContext& context);

const OpInfo& op_info(OpKind kind);
const OpInfo* find_op(std::string_view name);
std::span<const OpInfo> all_ops();

// Shape rule, allocation and evaluation in one call: constant folding, the oracle, and "eval" steps. `place` may supply
// the memory of output i (an undefined Tensor = allocate here).
using PlaceOutput = std::function<Result<Tensor>(size_t i, DType dtype, const Dims& dims)>;
Result<std::vector<Tensor>> run_op(const Attributes& attributes, std::span<const Tensor> inputs, size_t num_outputs,
                                   const PlaceOutput& place = {});

}  // namespace lathe
