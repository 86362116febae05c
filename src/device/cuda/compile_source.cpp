// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/compile_source.h"

#include <algorithm>
#include <cstring>

namespace lathe::cuda {
namespace {

constexpr size_t kMaxLog = 256 << 10;

std::string shortened(std::string log) {
  if (log.size() > kMaxLog) log.replace(kMaxLog / 2, log.size() - kMaxLog, "\n...\n");
  return log;
}

std::string log_of(const Nvrtc& nvrtc, nvrtcProgram program) {
  size_t size = 0;
  if (nvrtc.nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS || size == 0) return "";
  std::string log(size, '\0');
  if (nvrtc.nvrtcGetProgramLog(program, log.data()) != NVRTC_SUCCESS) return "";
  log.resize(std::strlen(log.c_str()));
  return shortened(std::move(log));
}

struct Program {
  const Nvrtc& nvrtc;
  nvrtcProgram handle = nullptr;
  ~Program() {
    if (handle) nvrtc.nvrtcDestroyProgram(&handle);
  }
};

}  // namespace

Compiled compile_source(const Nvrtc& nvrtc, const CompileRequest& request) {
  std::vector<const char*> names, texts, options;
  for (const CompileRequest::Header& header : request.headers) {
    names.push_back(header.name.c_str());
    texts.push_back(header.text.c_str());
  }
  for (const std::string& option : request.options) options.push_back(option.c_str());
  Program program{nvrtc};
  Compiled compiled;
  compiled.result = nvrtc.nvrtcCreateProgram(&program.handle, request.source.c_str(), "kernel.cu",
                                             static_cast<int>(names.size()), texts.data(), names.data());
  if (compiled.result != NVRTC_SUCCESS) return compiled;
  compiled.result = nvrtc.nvrtcCompileProgram(program.handle, static_cast<int>(options.size()), options.data());
  compiled.log = log_of(nvrtc, program.handle);
  // There is a cubin for real architectures alone.
  const bool is_virtual = std::ranges::any_of(
      request.options, [](const std::string& option) { return option.starts_with("--gpu-architecture=compute_"); });
  const auto get_size = is_virtual ? nvrtc.nvrtcGetPTXSize : nvrtc.nvrtcGetCUBINSize;
  const auto get = is_virtual ? nvrtc.nvrtcGetPTX : nvrtc.nvrtcGetCUBIN;
  size_t size = 0;
  if (compiled.result == NVRTC_SUCCESS) compiled.result = get_size(program.handle, &size);
  compiled.code.resize(size);
  if (compiled.result == NVRTC_SUCCESS) compiled.result = get(program.handle, compiled.code.data());
  return compiled;
}

}  // namespace lathe::cuda
