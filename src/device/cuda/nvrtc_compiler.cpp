// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/nvrtc_compiler.h"

#include <algorithm>
#include <cstring>

#include "device/cuda/compile_log.h"

namespace lathe::cuda {
namespace {

std::string log_of(const Nvrtc& nvrtc, nvrtcProgram program) {
  size_t size = 0;
  if (nvrtc.nvrtcGetProgramLogSize(program, &size) != NVRTC_SUCCESS || size == 0) return "";
  std::string log(size, '\0');
  if (nvrtc.nvrtcGetProgramLog(program, log.data()) != NVRTC_SUCCESS) return "";
  log.resize(std::strlen(log.c_str()));
  return log;
}

struct Program {
  const Nvrtc& nvrtc;
  nvrtcProgram handle = nullptr;
  ~Program() {
    if (handle) nvrtc.nvrtcDestroyProgram(&handle);
  }
};

Result<> check_spills(std::string_view log) {
  const Resources used = parse_resources(log);
  if (used.spill_store_bytes == 0 && used.spill_load_bytes == 0) return {};
  return fail(ErrorCode::kernel_spills,
              "the kernel spills registers: {} bytes of stores and {} of loads, with {} registers",
              used.spill_store_bytes, used.spill_load_bytes, used.registers);
}

}  // namespace

Result<std::unique_ptr<NvrtcCompiler>> NvrtcCompiler::create(std::string_view target,
                                                             std::span<const SourceHeader> headers,
                                                             std::string cache_folder) {
  LATHE_TRY(parse_target(target));
  LATHE_ASSIGN(const Nvrtc* found, nvrtc());
  return create(*found, target, headers, std::move(cache_folder));
}

Result<std::unique_ptr<NvrtcCompiler>> NvrtcCompiler::create(const Nvrtc& found, std::string_view target,
                                                             std::span<const SourceHeader> headers,
                                                             std::string cache_folder) {
  LATHE_ASSIGN(const Architecture* architecture, parse_target(target));
  if (std::find(found.architectures.begin(), found.architectures.end(), architecture->number) ==
      found.architectures.end())
    return fail(ErrorCode::nvrtc_unsuitable, "NVRTC {}.{} ('{}') does not compile for sm_{} ({}): install {}",
                found.major, found.minor, found.path, architecture->number, architecture->family,
                architecture->number > found.architectures.back() ? "a newer one" : "an older one");
  return std::unique_ptr<NvrtcCompiler>(new NvrtcCompiler(found, *architecture, headers, std::move(cache_folder)));
}

NvrtcCompiler::NvrtcCompiler(const Nvrtc& nvrtc, const Architecture& architecture,
                             std::span<const SourceHeader> headers, std::string cache_folder)
    : nvrtc_(nvrtc),
      architecture_(architecture),
      headers_(headers),
      options_{fmt::format("--gpu-architecture={}", architecture.code), "-default-device", "--std=c++17", "--fmad=true",
               "--ptxas-options=-v"},
      cache_(std::move(cache_folder)) {}

// All that the code depends on: of the headers, those that the source includes.
Digest NvrtcCompiler::key_of(std::string_view source) const {
  std::string material = fmt::format("nvrtc {}.{}", nvrtc_.major, nvrtc_.minor);
  const auto add = [&](std::string_view text) { material += fmt::format("\n{} ", text.size()).append(text); };
  for (const std::string& option : options_) add(option);
  add(source);
  for (const SourceHeader& header : include_closure(source, headers_)) {
    add(header.name);
    add(header.text);
  }
  return digest_of(std::as_bytes(std::span(material)));
}

Result<std::vector<std::byte>> NvrtcCompiler::compile(std::string_view source) {
  const Digest key = key_of(source);
  if (std::optional<std::vector<std::byte>> kept = cache_.find(key)) return *std::move(kept);
  LATHE_ASSIGN(std::vector<std::byte> code, compile_anew(source));
  cache_.store(key, code);
  return code;
}

Result<> NvrtcCompiler::check(nvrtcResult result, nvrtcProgram program) const {
  if (result == NVRTC_SUCCESS) return {};
  const std::string log = program ? log_of(nvrtc_, program) : "";
  const std::string error = first_error(log);
  if (result == NVRTC_ERROR_OUT_OF_MEMORY)
    return fail(ErrorCode::out_of_memory, "compiling a kernel for {}: NVRTC has no memory left", architecture_.code);
  if (result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE || error.find("libnvrtc-builtins") != error.npos)
    return fail(
        ErrorCode::nvrtc_unsuitable,
        "'{}' does not find its library of built-in functions: install libnvrtc-builtins of version {}.{} beside "
        "it ({})",
        nvrtc_.path, nvrtc_.major, nvrtc_.minor, error);
  return fail(ErrorCode::kernel_compile_failed, "compiling a kernel for {} with NVRTC {}.{}: error {}: {}",
              architecture_.code, nvrtc_.major, nvrtc_.minor, int{result}, error.empty() ? "no message" : error);
}

Result<std::vector<std::byte>> NvrtcCompiler::compile_anew(std::string_view source) const {
  std::vector<const char*> names, texts, options;
  for (const SourceHeader& header : headers_) {
    names.push_back(header.name);
    texts.push_back(header.text);
  }
  for (const std::string& option : options_) options.push_back(option.c_str());
  Program program{nvrtc_};
  LATHE_TRY(check(nvrtc_.nvrtcCreateProgram(&program.handle, std::string(source).c_str(), "kernel.cu",
                                            static_cast<int>(names.size()), texts.data(), names.data()),
                  nullptr));
  LATHE_TRY(check(nvrtc_.nvrtcCompileProgram(program.handle, static_cast<int>(options.size()), options.data()),
                  program.handle));
  LATHE_TRY(check_spills(log_of(nvrtc_, program.handle)));
  size_t size = 0;
  LATHE_TRY(check(nvrtc_.nvrtcGetCUBINSize(program.handle, &size), program.handle));
  std::vector<std::byte> code(size);
  LATHE_TRY(check(nvrtc_.nvrtcGetCUBIN(program.handle, reinterpret_cast<char*>(code.data())), program.handle));
  return code;
}

}  // namespace lathe::cuda
