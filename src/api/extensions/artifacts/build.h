// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "NvInfer.h"
#include "api/extensions/artifacts/request.h"

namespace lathe::api::artifacts {

struct Built {
  std::unique_ptr<nvinfer1::IHostMemory> plan;
  Json parser = Json::array();  // what it said: [{"severity", "message"}]
  JsonValue profiles;           // that were used, as a request has them
};

// Builds the engine into `built`; what goes wrong is logged, and the error repeats it. What the parser said is there
// even then.
Result<> build(const ArtifactRequest& request, nvinfer1::ILogger& logger, Built& built);

}  // namespace lathe::api::artifacts
