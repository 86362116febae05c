// SPDX-License-Identifier: Apache-2.0
// Separable resizing: kernel "resize". Its tables come from the plain evaluation itself: resizing the rows of an
// identity matrix gives, for every output element, the weight of every input element.
#include <algorithm>

#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kMaxExtent = 2048;  // of a resized dimension: the table costs its square while building

class ResizeTactic final : public Tactic {
 public:
  std::string_view name() const override { return "resize"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::resize)) return "not a resize";
    const auto& attrs = problem.attrs<ResizeAttrs>();
    const Operand& x = problem.inputs[0];
    const Operand& y = problem.outputs[0];
    if (x.dtype != DType::f32) return fmt::format("its input is {}", name_of(x.dtype));
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    if (attrs.coordinates == CoordinateMode::tf_crop_and_resize) return "cropping";
    if (attrs.aspect != AspectPolicy::stretch) return "an aspect policy";
    if (!scales(problem) && !sizes(problem)) return "its scales and sizes are not constant";
    for (size_t d = 0; d < x.dims.size(); ++d) {
      if (x.dims[d] == y.dims[d] && !scales(problem)) continue;
      if (!x.dims[d].is_constant() || !y.dims[d].is_constant()) {
        if (x.dims[d] == y.dims[d]) continue;
        return "a resized dimension is dynamic";
      }
      if (x.dims[d] != y.dims[d] && (*x.dims[d].as_constant() > kMaxExtent || *x.dims[d].as_constant() == 0))
        return "a resized dimension is too long or empty";
    }
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem&) const override { return {Config{}}; }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "resize";
    emission.inputs = {{StepInput::input, 0}};
    int64_t axes = 0;
    for (size_t d = 0; d < problem.inputs[0].dims.size(); ++d) {
      if (problem.inputs[0].dims[d] == problem.outputs[0].dims[d]) continue;
      axes |= int64_t{1} << d;
      LATHE_TRY(add_tables(problem, d, emission));
    }
    emission.params = {axes};
    return emission;
  }

 private:
  static const Tensor* constant(const Problem& problem, size_t i) {
    return problem.inputs.size() > i && problem.inputs[i].constant && problem.inputs[i].constant->volume() > 0
               ? problem.inputs[i].constant
               : nullptr;
  }
  static const Tensor* scales(const Problem& problem) { return constant(problem, 2); }
  static const Tensor* sizes(const Problem& problem) { return constant(problem, 3); }

  static size_t position(const Problem& problem, size_t dimension) {
    const Ints& axes = problem.attrs<ResizeAttrs>().axes;
    const auto rank = static_cast<int64_t>(problem.inputs[0].dims.size());
    for (size_t i = 0; i < axes.size(); ++i)
      if ((axes[i] < 0 ? axes[i] + rank : axes[i]) == static_cast<int64_t>(dimension)) return i;
    return dimension;
  }

  static Result<> add_tables(const Problem& problem, size_t dimension, Emission& emission) {
    const int64_t n = *problem.inputs[0].dims[dimension].as_constant();
    LATHE_ASSIGN(Tensor identity, Tensor::allocate(DType::f32, {n, n}));
    for (int64_t i = 0; i < n * n; ++i) identity.mutable_as<float>()[i] = i % (n + 1) == 0 ? 1.0f : 0.0f;
    ResizeAttrs attrs = problem.attrs<ResizeAttrs>();
    attrs.axes = {1};
    const size_t at = position(problem, dimension);
    std::vector<Tensor> inputs = {identity, Tensor(), Tensor(), Tensor()};
    if (scales(problem))
      inputs[2] = Tensor::of<float>({1}, {static_cast<float>(scales(problem)->at_double(static_cast<int64_t>(at)))});
    else
      inputs[3] = Tensor::of<int64_t>({1}, {sizes(problem)->at(static_cast<int64_t>(at))});
    LATHE_ASSIGN(std::vector<Tensor> rows, run_op(attrs, inputs, 1));
    const int64_t m = rows[0].dims()[1];
    LATHE_CHECK(m == *problem.outputs[0].dims[dimension].as_constant());
    const float* weight = rows[0].as<float>();  // [input element][output element]
    int64_t taps = 1;
    for (int64_t j = 0; j < m; ++j) {
      int64_t count = 0;
      for (int64_t i = 0; i < n; ++i) count += weight[i * m + j] != 0;
      taps = std::max(taps, count);
    }
    LATHE_ASSIGN(Tensor index, Tensor::allocate(DType::i32, {m, taps}));
    LATHE_ASSIGN(Tensor weights, Tensor::allocate(DType::f32, {m, taps}));
    for (int64_t j = 0; j < m; ++j) {
      int64_t t = 0;
      int32_t last = 0;
      for (int64_t i = 0; i < n; ++i) {
        if (weight[i * m + j] == 0) continue;
        index.mutable_as<int32_t>()[j * taps + t] = last = static_cast<int32_t>(i);
        weights.mutable_as<float>()[j * taps + t++] = weight[i * m + j];
      }
      for (; t < taps; ++t) {
        index.mutable_as<int32_t>()[j * taps + t] = last;
        weights.mutable_as<float>()[j * taps + t] = 0;
      }
    }
    for (Tensor* table : {&index, &weights}) {
      emission.inputs.push_back({StepInput::packed, emission.packed.size()});
      emission.packed.push_back(std::move(*table));
    }
    return {};
  }
};

}  // namespace

const Tactic& resize_tactic() {
  static const ResizeTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
