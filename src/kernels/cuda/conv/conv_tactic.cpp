// SPDX-License-Identifier: Apache-2.0
// Convolution as an implicit matrix product: output pixels by output channels.
#include "kernels/cuda/conv/implicit_gemm_tactic.h"
#include "kernels/cuda/conv/weights_tactic.h"
#include "kernels/cuda/gemm/pipeline_tactic.h"
#include "kernels/cuda/match.h"

namespace lathe::cuda {
namespace {

using conv::ImplicitGemm;
using gemm::TileShape;

std::vector<Config> configs(const Problem& problem, const ImplicitGemm& form) {
  gemm::Extent extent = conv::extent_of(problem, form);
  const std::optional<gemm::Product> product = conv::product_of(problem, form);
  const gemm::Ending ending = conv::ending_of(form, extent.dtype);
  extent.copied = product && gemm::can_copy(problem, *product, ending);
  if (extent.copied) extent.copied_k = *product->k.as_constant();
  extent.weights_first = ending.weights_first;
  extent.neighbours = extent.copied ? gemm::neighbours(*product, ending) : 0;
  return gemm::configs(extent);
}

Result<Emission> emit(const Problem& problem, const ImplicitGemm& form, const Config& config) {
  const auto& tile = config.as<TileShape>();
  const DType dtype = problem.inputs[0].dtype;
  LATHE_ASSIGN(const Tensor weights, conv::in_order(*problem.inputs[1].weights, form.shuffle.order));
  const bool is_pipeline = tile.unit == TileShape::pipeline;
  const int64_t channels = is_pipeline ? form.copied_channels(dtype) : form.padded;
  LATHE_ASSIGN(Packed packed, conv::pack_weights(Known{weights, problem.inputs[1].derivation}, channels));
  const Operand b = packed_operand(packed);
  Emission emission = with_weights(std::move(packed));
  LATHE_TRY(conv::add_operands(form.shuffle, emission));
  if (is_pipeline) {
    gemm::finish_pipeline(problem, *conv::product_of(problem, form), tile, conv::ending_of(form, dtype), emission);
    return emission;
  }
  Source source("conv/conv.cuh");
  source.input(0, problem.inputs[0], "A");
  source.input(1, b, "B");
  std::string body = conv::declare_product(source, tile, dtype, form);
  body += conv::input_loader(source, problem, form, tile, emission);
  body += conv::weights_loader(source, b, form.outputs, form.k(), tile);
  gemm::finish(source, std::move(body), tile, conv::ending_of(form, dtype), emission);
  return emission;
}

}  // namespace

Matched match_conv(const Problem& problem) {
  ImplicitGemm form;
  if (auto reason = conv::describe(problem, form)) return refuse(*std::move(reason));
  return match_form(problem, std::move(form), configs, emit);
}

}  // namespace lathe::cuda
