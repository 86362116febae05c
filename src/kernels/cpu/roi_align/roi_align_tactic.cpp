// SPDX-License-Identifier: Apache-2.0
// Kernel "roi_align".
#include <bit>

#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

bool is_contiguous(const Operand& x, size_t dim) { return x.strides[dim] == Expr(1) || x.dims[dim] == Expr(1); }

class RoiAlignTactic final : public Tactic {
 public:
  std::string_view name() const override { return "roi_align"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::roi_align)) return "not a region alignment";
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    for (const size_t i : {0, 1})
      if (problem.inputs[i].dtype != DType::f32)
        return fmt::format("an operand is {}, this kernel computes in f32", name_of(problem.inputs[i].dtype));
    const DType images = problem.inputs[2].dtype;
    if (images != DType::i64 && images != DType::i32) return fmt::format("its image numbers are {}", name_of(images));
    if (!is_contiguous(problem.inputs[0], 1) && !is_contiguous(problem.inputs[0], 3))
      return "neither channels nor columns of its input are contiguous";
    if (problem.attrs<RoiAlignAttrs>().sampling_ratio > 65536) return "more than 65536 samples of a bin";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    const auto& attrs = problem.attrs<RoiAlignAttrs>();
    Emission emission;
    emission.kernel = "roi_align";
    for (size_t i = 0; i < 3; ++i) emission.inputs.push_back({StepInput::input, i});
    emission.params = {attrs.mode == PoolingOp::max ? 1 : 0, attrs.sampling_ratio,
                       std::bit_cast<uint32_t>(static_cast<float>(attrs.spatial_scale)), attrs.half_pixel ? 1 : 0};
    return emission;
  }
};

}  // namespace

const Tactic& roi_align_tactic() {
  static const RoiAlignTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
