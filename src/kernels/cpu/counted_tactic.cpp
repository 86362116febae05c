// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/counted_tactic.h"

#include <algorithm>

#include "kernels/cpu/compress/compress.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/non_max_suppression/non_max_suppression.h"
#include "kernels/cpu/nonzero/nonzero.h"

namespace lathe::cpu {
namespace {

class SuppressTactic final : public CountedTactic {
 public:
  std::string_view name() const override { return "non_max_suppression"; }

  bool takes(const Problem& problem) const override {
    if (!problem.is(OpKind::non_max_suppression)) return false;
    const auto is = [&](size_t i, DType type, DType other) {
      if (i >= problem.inputs.size() || problem.inputs[i].omitted) return true;
      return problem.inputs[i].dtype == type || problem.inputs[i].dtype == other;
    };
    for (const size_t i : {0, 1, 3, 4})
      if (!is(i, DType::f32, DType::f32)) return false;
    return is(2, DType::i64, DType::i32);
  }

  Result<CountedEmission> emit(const Problem& problem) const override {
    const Shape& scores = problem.inputs[1].dims;
    const bool limited = problem.inputs.size() > 2 && !problem.inputs[2].omitted;
    const Tensor* most = limited ? problem.inputs[2].constant : nullptr;
    Expr length = limited ? scores[2] : Expr(0);
    if (most) length = min(length, std::max<int64_t>(most->at(0), 0));
    const Expr slots = scores[0] * scores[1];
    CountedEmission counted;
    counted.count = slots * length + slots;
    counted.found = {counted.count + 1};
    const bool centered = problem.attrs<NonMaxSuppressionAttrs>().center_point_box;
    counted.find.params = encode_params(NonMaxSuppressionParams{false, centered});
    counted.write.params = encode_params(NonMaxSuppressionParams{true, centered});
    for (size_t i = 0; i < 5; ++i) counted.find.inputs.push_back({StepInput::input, i});
    counted.write.inputs = {{StepInput::input, 1}};
    return counted;
  }
};

class NonzeroTactic final : public CountedTactic {
 public:
  std::string_view name() const override { return "nonzero"; }
  bool takes(const Problem& problem) const override { return problem.is(OpKind::nonzero); }

  Result<CountedEmission> emit(const Problem& problem) const override {
    CountedEmission counted;
    counted.count = volume(problem.inputs[0].dims);
    counted.found = {counted.count + 1};
    counted.output_dim = 1;
    counted.find.params = encode_params(NonzeroParams{false});
    counted.write.params = encode_params(NonzeroParams{true});
    counted.find.inputs = counted.write.inputs = {{StepInput::input, 0}};
    return counted;
  }
};

class CompressTactic final : public CountedTactic {
 public:
  std::string_view name() const override { return "compress"; }

  // Of a flat tensor, positions are offsets.
  bool takes(const Problem& problem) const override {
    if (!problem.is(OpKind::compress)) return false;
    const Operand& x = problem.inputs[0];
    return !problem.attrs<CompressAttrs>().flat || is_dense(x.dims, x.strides, Layout::linear);
  }

  Result<CountedEmission> emit(const Problem& problem) const override {
    const auto& attrs = problem.attrs<CompressAttrs>();
    const int axis = attrs.flat ? -1 : axis_from_start(attrs.axis, problem.inputs[0]);
    CountedEmission counted;
    counted.count = problem.inputs[1].dims[0];
    counted.found = {counted.count + 1};
    counted.output_dim = static_cast<size_t>(std::max(axis, 0));
    counted.find.params = encode_params(CompressParams{false, axis});
    counted.write.params = encode_params(CompressParams{true, axis});
    counted.find.inputs = {{StepInput::input, 0}, {StepInput::input, 1}};
    counted.write.inputs = {{StepInput::input, 0}};
    return counted;
  }
};

// Ops whose results' sizes follow from the contents of small inputs (pads, a depth, k): the shape rule reads all inputs
// of the op, in its order, and so their kernels are given those that only say sizes, too.
class SizedTactic final : public CountedTactic {
 public:
  std::string_view name() const override { return "sized"; }

  bool takes(const Problem& problem) const override { return match(problem).second != nullptr; }

  Result<CountedEmission> emit(const Problem& problem) const override {
    const auto [name, match] = this->match(problem);
    CountedEmission sized;
    sized.by_rule = true;
    LATHE_ASSIGN(sized.write, match->emit(match->configs()[0]));
    sized.write.kernel = name;
    sized.write.inputs.clear();
    for (size_t i = 0; i < problem.inputs.size(); ++i) sized.write.inputs.push_back({StepInput::input, i});
    return sized;
  }

 private:
  // The first of the CPU's tactics that takes it, and its name.
  static std::pair<std::string_view, std::unique_ptr<Match>> match(const Problem& problem) {
    static constexpr OpKind kKinds[] = {OpKind::slice,   OpKind::pad,    OpKind::tile,   OpKind::expand,
                                        OpKind::fill,    OpKind::range,  OpKind::topk,   OpKind::one_hot,
                                        OpKind::reshape, OpKind::random, OpKind::choose, OpKind::resize};
    if (!problem.attributes ||
        std::find(std::begin(kKinds), std::end(kKinds), problem.attributes->kind()) == std::end(kKinds))
      return {};
    for (const Tactic* tactic : cpu_tactics())
      if (Matched matched = tactic->match(problem)) return {tactic->name(), *std::move(matched)};
    return {};
  }
};

}  // namespace

const CountedTacticList& counted_tactics() {
  static const SuppressTactic suppress;
  static const NonzeroTactic nonzero;
  static const CompressTactic compress;
  static const SizedTactic sized;
  static const CountedTacticList list = {&suppress, &nonzero, &compress, &sized};
  return list;
}

}  // namespace lathe::cpu
