// SPDX-License-Identifier: Apache-2.0
#include "api/builder/calibration.h"

#include <fmt/ranges.h>

#include "quantization/quantize_products.h"

namespace lathe::api {
namespace {

// Why ranges have no effect in this build; null = they have.
const char* reason_against(bool int8, const ir::Graph& graph, const BuildOptions& options) {
  if (!int8) return "int8 is not asked for";
  if (is_quantized(graph)) return "quantize and dequantize layers of the network say what is held in int8";
  if (!options.traits.arithmetic.integer_products) return "the target multiplies floats only";
  if (options.refit.kind != plan::RefitKind::none)
    return "weights that can be replaced have no scales that are known now; build without kREFIT";
  return nullptr;
}

void tell_of(const QuantizedNetwork& network, Log& log) {
  log.print(Severity::info, "int8: {} convolutions and matrix products multiply integers, of {} tensors",
            network.products, network.tensors.size());
  if (!network.unknown.empty())
    log.print(Severity::warning, "{} tensors have no range, and layers that multiply them stay in floats: {}",
              network.unknown.size(), fmt::join(network.unknown, ", "));
  else if (network.products == 0)
    log.print(Severity::warning,
              "int8 is asked for, but no layer multiplies a tensor by constant weights that the target can multiply in "
              "int8: nothing is quantised");
}

}  // namespace

Result<> quantize_implicitly(const BuilderConfig& settings, bool int8, const NetworkDefinition& network,
                             ir::Graph& graph, const BuildOptions& options) {
  TensorScales scales = given_scales(network);
  TensorScales cached = settings.calibration;
  scales.merge(cached);
  if (scales.empty() && !has_calibrator(settings)) {
    if (int8 && !is_quantized(graph))
      options.log->print(Severity::warning,
                         "int8 is asked for, but the network has no quantize and dequantize layers, so nothing is "
                         "quantised: export it with Q/DQ pairs, or give a calibration cache{}",
                         NV_TENSORRT_MAJOR < 11 ? ", a calibrator or the ranges of tensors" : "");
    return {};
  }
  if (const char* reason = reason_against(int8, graph, options)) {
    options.log->print(Severity::warning, "calibration and the ranges of tensors have no effect: {}", reason);
    return {};
  }
  PassContext context = options.passes;
  context.arithmetic = options.traits.arithmetic;
  LATHE_TRY(run_pass("fold_constants", graph, context));  // weights that are transposed, say
  if (has_calibrator(settings)) {
    LATHE_ASSIGN(std::vector<std::string> tensors, quantizable_tensors(graph, context));
    std::erase_if(tensors, [&](const std::string& tensor) { return scales.contains(tensor); });
    LATHE_ASSIGN(TensorScales found, calibrated_scales(settings, graph, tensors, options));
    scales.merge(found);
  }
  LATHE_ASSIGN(const QuantizedNetwork quantized, quantize_products(graph, scales, context));
  tell_of(quantized, *options.log);
  return {};
}

}  // namespace lathe::api
