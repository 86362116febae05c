// SPDX-License-Identifier: Apache-2.0
// Arithmetic that makes constants of weights, element by element: casts, and what has one number for each channel
// or each element, as folded batch normalisation does. Gives the bits of the plain evaluation, piece by piece.
#pragma once

#include <optional>
#include <span>

#include "ops/float_blocks.h"
#include "ops/op.h"
#include "ops/pack_box.h"
#include "ops/tensor.h"

namespace lathe {

// Whether finite numbers of a floating type stay finite in another.
bool holds_range(DType to, DType from);

// A number joins in for each channel, then the result is rounded to a type.
struct ChannelStep {
  std::optional<ElementwiseOp> op;  // +, -, *, /, of the element and the number; none = a cast
  Tensor numbers;                   // of f64: element i has number i / inner % size
  int64_t inner = 1;
  DType type = DType::f32;

  // The step of an op; nullopt where it is another. `numbers`: its second operand's, in f64 before the step is done.
  static std::optional<ChannelStep> of_cast(DType from, const CastAttrs& attributes);
  static std::optional<ChannelStep> of(const ElementwiseAttrs& attributes, DType type, const Dims& dims,
                                       const Tensor& numbers);
};

class ChannelArithmetic {
 public:
  ChannelArithmetic() = default;
  // `source`: of f32, f16, bf16 or f64 where there are steps.
  explicit ChannelArithmetic(Tensor source, std::vector<ChannelStep> steps = {});
  void set_source(Tensor source) { source_ = std::move(source); }  // of the same type and dims
  void add(ChannelStep step) { steps_.push_back(std::move(step)); }

  std::span<const ChannelStep> steps() const { return steps_; }  // none = the source is the result
  DType type() const { return steps_.empty() ? source_.dtype() : steps_.back().type; }
  int64_t volume() const { return source_.volume(); }
  const Tensor& source() const { return source_; }

  // A finite number that a cast makes infinite, and the type that cannot hold it.
  struct OutOfRange {
    double number;
    DType type;
    Error error() const;
  };
  // Elements [begin, begin + count), of type(). Allocates nothing. `found`: null = nobody looks.
  void run(int64_t begin, int64_t count, std::byte* to, std::optional<OutOfRange>* found = nullptr) const;
  std::optional<OutOfRange> find_out_of_range() const;
  // Whether its type holds all numbers of the source's, so that nobody need look.
  bool holds_range() const { return lathe::holds_range(type(), source_.dtype()); }

  // Where all that it does is to multiply floats: by what, and whose. Hold while this does.
  std::optional<ChannelFactors> factors() const;

 private:
  void run_block(int64_t begin, std::span<double> block, std::optional<OutOfRange>* found) const;
  template <class F>
  static void for_each_run(const ChannelStep& step, int64_t begin, int64_t count, const F& f);
  bool begins_with_scaling() const;  // of floats by doubles, rounded once
  bool is_scaling() const { return steps_.size() == 3 && begins_with_scaling(); }
  void scale(int64_t begin, int64_t count, float* to) const;
  bool narrow(NarrowFloats narrow, int64_t begin, int64_t count, std::byte* to) const;
  NarrowFloats narrowing() const;  // of floats, scaled or as they are; nullptr = it does something else

  Tensor source_;
  std::vector<ChannelStep> steps_;
};

}  // namespace lathe
