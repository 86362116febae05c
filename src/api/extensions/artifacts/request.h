// SPDX-License-Identifier: Apache-2.0
// What an application wants of the artifact cache: lathe_artifacts.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/json_value.h"

namespace lathe::api::artifacts {

struct ArtifactRequest {
  std::string onnx, directory, precision = "fp32", target, framework;
  int64_t batch = 1;
  JsonValue profiles{JsonValue::Kind::array};
  bool tf32 = true;
  int64_t level = -1;  // of optimization; the builder's default
  double budget_seconds = -1;
  int64_t threads = 0;  // of a CPU; 0: all cores
  bool refit = false;
  std::vector<std::string> plugins;

  std::filesystem::path root() const;    // the folder of all artifacts; never empty
  std::filesystem::path engine() const;  // where this one lies
};

// Fails with config_invalid, naming the part that is wrong.
Result<ArtifactRequest> parse_request(const char* text);

}  // namespace lathe::api::artifacts
