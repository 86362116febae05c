// SPDX-License-Identifier: Apache-2.0
// Implicit quantisation: ranges of tensors in place of quantize layers.
#pragma once

#include "api/builder/builder_config.h"
#include "api/network/network.h"
#include "lowering/build.h"

namespace lathe::api {

// Quantises a float network by the ranges that its tensors were given, by those of a calibration cache, and by those
// that a calibrator finds. Warns where int8 is asked for and nothing comes of it, and where ranges have no effect.
Result<> quantize_implicitly(const BuilderConfig& settings, bool int8, const NetworkDefinition& network,
                             ir::Graph& graph, const BuildOptions& options);

// What generation 10 has: ranges of tensors, and calibrators, which are asked for those of `tensors`.
#if NV_TENSORRT_MAJOR < 11
TensorScales given_scales(const nv::INetworkDefinition& network);
bool has_calibrator(const BuilderConfig& settings);
Result<TensorScales> calibrated_scales(const BuilderConfig& settings, const ir::Graph& graph,
                                       std::span<const std::string> tensors, const BuildOptions& options);
#else
inline TensorScales given_scales(const nv::INetworkDefinition&) { return {}; }
inline bool has_calibrator(const BuilderConfig&) { return false; }
inline Result<TensorScales> calibrated_scales(const BuilderConfig&, const ir::Graph&, std::span<const std::string>,
                                              const BuildOptions&) {
  return TensorScales();
}
#endif

}  // namespace lathe::api
