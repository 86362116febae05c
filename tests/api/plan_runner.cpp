// SPDX-License-Identifier: Apache-2.0
// Runs a plan, with the public headers of the runtime alone:
//   plan_runner plan input-folder output-folder [plugin-library]
// Inputs are raw values in files named after their tensors; outputs are written likewise. An input has the dims that
// the first profile is best at. Where CHECK_NO_BUILDER is given, the process must have no builder.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "NvInferRuntime.h"
#include "lathe.h"

namespace {

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

std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool run(nv::ICudaEngine& engine, const std::string& from, const std::string& to) {
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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
#ifdef CHECK_NO_BUILDER
  for (const char* name : {"createInferBuilder_INTERNAL", "createNvOnnxParser_INTERNAL", "getNvOnnxParserVersion"})
    if (dlsym(RTLD_DEFAULT, name)) {
      std::fprintf(stderr, "%s is here\n", name);
      return 1;
    }
#endif
  Logger logger;
  std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(logger));
  if (!runtime || (argc == 5 && !runtime->getPluginRegistry().loadLibrary(argv[4]))) return 1;
  std::unique_ptr<nv::ICudaEngine> engine(lathe::loadEngineFile(*runtime, argv[1]));
  if (!engine) return 1;
  std::unique_ptr<nv::IEngineInspector> inspector(engine->createEngineInspector());
  if (!inspector || !std::strstr(inspector->getEngineInformation(nv::LayerInformationFormat::kJSON), "Bindings"))
    return 1;
  return run(*engine, argv[2], argv[3]) ? 0 : 1;
}
