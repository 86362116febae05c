// SPDX-License-Identifier: Apache-2.0
// What programs have in common that run a plan with the public headers of the runtime alone. Inputs are raw values in
// files named after their tensors; outputs are written likewise. An input has the dims that the first profile is best
// at.
#pragma once

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "NvInferRuntime.h"

namespace run_plan {

namespace nv = nvinfer1;

class Logger final : public nv::ILogger {
 public:
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kWARNING) std::fprintf(stderr, "%s\n", message);
  }
};

class Output final : public nv::IOutputAllocator {
 public:
  void* reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t, cudaStream_t) noexcept override {
    bytes.resize(size);
    static char none;
    return bytes.empty() ? &none : bytes.data();
  }
  void notifyShape(const char*, const nv::Dims&) noexcept override {}
  std::vector<char> bytes;
};

inline std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<char> bytes(file ? static_cast<size_t>(file.tellg()) : 0);
  file.seekg(0).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

inline bool run(nv::ICudaEngine& engine, const std::string& from, const std::string& to) {
  std::unique_ptr<nv::IExecutionContext> context(engine.createExecutionContext());
  if (!context) return false;
  const int32_t count = engine.getNbIOTensors();
  std::vector<std::vector<char>> inputs(static_cast<size_t>(count));
  std::vector<Output> outputs(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) {
    const auto index = static_cast<size_t>(i);
    const char* name = engine.getIOTensorName(i);
    if (engine.getTensorIOMode(name) == nv::TensorIOMode::kOUTPUT) {
      if (!context->setOutputAllocator(name, &outputs[index])) return false;
      continue;
    }
    inputs[index] = read_file(from + "/" + name);
    if (!context->setInputShape(name, engine.getProfileShape(name, 0, nv::OptProfileSelector::kOPT)) ||
        !context->setInputTensorAddress(name, inputs[index].data()))
      return false;
  }
  if (!context->enqueueV3(nullptr)) return false;
  context.reset();  // waits for the work
  for (int32_t i = 0; i < count; ++i) {
    const char* name = engine.getIOTensorName(i);
    if (engine.getTensorIOMode(name) != nv::TensorIOMode::kOUTPUT) continue;
    const std::vector<char>& bytes = outputs[static_cast<size_t>(i)].bytes;
    std::ofstream(to + "/" + name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  return true;
}

}  // namespace run_plan
