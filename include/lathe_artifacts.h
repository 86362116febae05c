// SPDX-License-Identifier: Apache-2.0
// Engines of ONNX models, kept beside the models and built anew when something has changed that they depend on:
// docs/artifacts.md. Functions report failure with nullptr, false or -1, and lastError() then says what went wrong. All
// are thread-safe, and processes may use the same folder.
#ifndef LATHE_ARTIFACTS_H
#define LATHE_ARTIFACTS_H

#include <string>

#include "lathe.h"

namespace lathe {

// What is wanted, as a JSON object. Only "onnx" must be there:
//   {"onnx": "models/net.onnx",    the model
//    "directory": "models",        where artifacts lie; the model's folder by default
//    "precision": "fp32",          or fp16, bf16, int8, best
//    "batch": 1,                   what open first dimensions of inputs are fixed to, unless profiles say otherwise
//    "profiles": [{"x": {"min": [1, 3], "opt": [4, 3], "max": [8, 3]}}],
//    "target": "cuda",             as setTarget() takes it; the default target by default
//    "tf32": true,
//    "level": 3,                   of optimization, 0 to 5
//    "budget_seconds": -1,         as setBuildBudget() takes it; not part of the key
//    "threads": 0,                 of a CPU that the engine is tuned for; 0: all cores
//    "refit": false,               whether its weights can be replaced: docs/refit.md
//    "plugins": ["libplugins.so"], libraries that the model needs
//    "framework": "torch 2.5.1"}   of the caller; it is part of the key
// Names that are not listed are refused.
//
// The engine is <directory>/<precision>/bs<batch>/<model>.engine, and beside it <model>.engine.json says what it
// depends on. An engine is used if every part of that is as it is now, and its bytes are those that were written.

// The engine's plan: the one that is there, or a new one, and the log says what has changed. Of processes that want the
// same one, one builds it and the others wait. With `mostBytes` > 0, engines below the directory that were not used for
// longest go, until they have no more than that. The caller deletes the plan.
TENSORRTAPI nvinfer1::IHostMemory* artifactPlan(const char* requestJson, nvinfer1::ILogger& logger,
                                                int64_t mostBytes = 0) noexcept;
// {"engine", "hit", "differences": [{"part", "then", "now"}], "key"}: whether artifactPlan() would find the engine, and
// what has changed if it would not; part "files" stands for files of no use, and "then" for why. Nothing is built or
// changed.
TENSORRTAPI nvinfer1::IHostMemory* artifactExplainJson(const char* requestJson) noexcept;
// The engines below a directory: [{"engine", "bytes", "used", "problem", "key"}]. `used` is in seconds since 1970.
// "problem" is null, or why the engine would not be used on any machine; with `verify` its bytes are read for that,
// too.
TENSORRTAPI nvinfer1::IHostMemory* artifactsJson(const char* directory, bool verify = false) noexcept;
// Removes engines below a directory that were not used for longest, until they have no more than `mostBytes`, and those
// that have a problem. Gives the bytes that were freed. Engines that are being built stay.
TENSORRTAPI int64_t pruneArtifacts(const char* directory, int64_t mostBytes) noexcept;

// The same as an object: where artifacts are logged and how large they may become together.
class ArtifactCache {
 public:
  explicit ArtifactCache(nvinfer1::ILogger& logger, int64_t mostBytes = 0) : logger_(logger), most_bytes_(mostBytes) {}
  nvinfer1::IHostMemory* plan(const std::string& requestJson) const noexcept {
    return artifactPlan(requestJson.c_str(), logger_, most_bytes_);
  }
  nvinfer1::IHostMemory* explainJson(const std::string& requestJson) const noexcept {
    return artifactExplainJson(requestJson.c_str());
  }

 private:
  nvinfer1::ILogger& logger_;
  int64_t most_bytes_;
};

}  // namespace lathe

#endif  // LATHE_ARTIFACTS_H
