// SPDX-License-Identifier: Apache-2.0
// Separable resizing: kernel "resize".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/resize_tables_tactic.h"

namespace lathe::cpu {
namespace {

class ResizeTactic final : public Tactic {
 public:
  std::string_view name() const override { return "resize"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::resize)) return "not a resize";
    if (problem.inputs[0].dtype != DType::f32) return fmt::format("its input is {}", name_of(problem.inputs[0].dtype));
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    return refuse_resize_tables(problem);
  }

  std::vector<Config> configs(const Problem&) const override { return {Config{}}; }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "resize";
    emission.inputs = {{StepInput::input, 0}};
    int64_t axes = 0;
    for (const size_t d : resized_dims(problem)) {
      axes |= int64_t{1} << d;
      LATHE_ASSIGN(ResizeTables tables, resize_tables(problem, d));
      for (Tensor* table : {&tables.index, &tables.weights}) {
        emission.inputs.push_back({StepInput::packed, emission.packed.size()});
        emission.packed.push_back(std::move(*table));
      }
    }
    emission.params = {axes};
    return emission;
  }
};

}  // namespace

const Tactic& resize_tactic() {
  static const ResizeTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
