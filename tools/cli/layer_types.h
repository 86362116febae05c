// SPDX-License-Identifier: Apache-2.0
// --precisionConstraints, --layerPrecisions and --layerOutputTypes.
#pragma once

#include "NvInfer.h"
#include "commands.h"

namespace lathe::cli {

// Throws UsageError for what cannot be understood.
void set_layer_types(nvinfer1::IBuilderConfig& config, const BuildSettings& settings);

}  // namespace lathe::cli
