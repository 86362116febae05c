// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/nvrtc_compiler.h"

#include <algorithm>

#include "base/file.h"
#include "device/cuda/compile_log.h"

namespace lathe::cuda {
namespace {

Result<> check_spills(std::string_view log) {
  const Resources used = parse_resources(log);
  if (used.spill_store_bytes == 0 && used.spill_load_bytes == 0) return {};
  return fail(ErrorCode::kernel_spills,
              "the kernel spills registers: {} bytes of stores and {} of loads, with {} registers",
              used.spill_store_bytes, used.spill_load_bytes, used.registers);
}

// Tells libraries of one version apart, such as two corrections of it, by the size, the beginning, where an ELF file
// has its build ID, and the end: the whole is 100 MB. 0 where the file cannot be read.
uint64_t build_of(const std::string& library) {
  constexpr size_t kPart = 64 << 10;
  const auto file = MappedFile::open(library);
  if (!file) return 0;
  const std::span<const std::byte> bytes = (*file)->bytes();
  const size_t part = std::min(kPart, bytes.size());
  return Hasher().add(uint64_t{bytes.size()}).add(bytes.first(part)).add(bytes.last(part)).value();
}

}  // namespace

Result<std::unique_ptr<NvrtcCompiler>> NvrtcCompiler::create(std::string_view target,
                                                             std::span<const SourceHeader> headers,
                                                             const CompilerOptions& options, std::string cache_folder) {
  LATHE_ASSIGN(const Architecture* architecture, parse_target(target));
  LATHE_ASSIGN(std::unique_ptr<Toolchain> toolchain, open_toolchain(options));
  const NvrtcInfo& found = toolchain->nvrtc();
  if (std::find(found.architectures.begin(), found.architectures.end(), architecture->number) ==
      found.architectures.end())
    return fail(ErrorCode::nvrtc_unsuitable, "NVRTC {}.{} ('{}') does not compile for sm_{} ({}): install {}",
                found.major, found.minor, found.path, architecture->number, architecture->family,
                architecture->number > found.architectures.back() ? "a newer one" : "an older one");
  if (!options.keeps_code) cache_folder.clear();
  return std::unique_ptr<NvrtcCompiler>(
      new NvrtcCompiler(std::move(toolchain), *architecture, headers, std::move(cache_folder)));
}

NvrtcCompiler::NvrtcCompiler(std::unique_ptr<Toolchain> toolchain, const Architecture& architecture,
                             std::span<const SourceHeader> headers, std::string cache_folder)
    : toolchain_(std::move(toolchain)),
      nvrtc_build_(build_of(toolchain_->nvrtc().path)),
      architecture_(architecture),
      headers_(headers),
      options_{fmt::format("--gpu-architecture={}", architecture.code), "-default-device", "--std=c++17", "--fmad=true",
               "--ptxas-options=-v"},
      cache_(std::move(cache_folder)) {}

// All that the code depends on. Only headers that the source includes are part of it, so that a change to another
// header leaves the cached code valid.
CompileRequest NvrtcCompiler::request_for(std::string_view source, std::span<const SourceHeader> headers) const {
  CompileRequest request{std::string(source), {}, options_};
  for (const SourceHeader& header : include_closure(source, headers))
    request.headers.push_back({header.name, header.text});
  return request;
}

Digest NvrtcCompiler::key_of(const CompileRequest& request) const {
  const NvrtcInfo& nvrtc = toolchain_->nvrtc();
  std::string material = fmt::format("nvrtc {}.{} {:x}", nvrtc.major, nvrtc.minor, nvrtc_build_);
  const auto add = [&](std::string_view text) { material += fmt::format("\n{} ", text.size()).append(text); };
  for (const std::string& option : request.options) add(option);
  add(request.source);
  for (const CompileRequest::Header& header : request.headers) {
    add(header.name);
    add(header.text);
  }
  return digest_of(std::as_bytes(std::span(material)));
}

std::vector<SourceFile> NvrtcCompiler::headers_of(std::string_view source) const {
  std::vector<SourceFile> files;
  for (const SourceHeader& header : include_closure(source, headers_))
    files.push_back({header.name, std::as_bytes(std::span(std::string_view(header.text)))});
  return files;
}

Result<std::vector<std::byte>> NvrtcCompiler::compile(std::string_view source, std::span<const SourceHeader> headers) {
  const CompileRequest request = request_for(source, headers);
  const Digest key = key_of(request);
  if (std::optional<std::vector<std::byte>> kept = cache_.find(key)) return *std::move(kept);
  LATHE_ASSIGN(std::vector<std::byte> code, compile_anew(request));
  cache_.store(key, code);
  return code;
}

Result<> NvrtcCompiler::check(const Compiled& compiled) const {
  if (compiled.result == NVRTC_SUCCESS) return {};
  const std::string error = first_error(compiled.log);
  const NvrtcInfo& nvrtc = toolchain_->nvrtc();
  if (compiled.result == NVRTC_ERROR_OUT_OF_MEMORY)
    return fail(ErrorCode::out_of_memory, "compiling a kernel for {}: NVRTC has no memory left", architecture_.code);
  if (compiled.result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE || error.find("libnvrtc-builtins") != error.npos)
    return fail(
        ErrorCode::nvrtc_unsuitable,
        "'{}' does not find its library of built-in functions: install libnvrtc-builtins of version {}.{} beside "
        "it ({})",
        nvrtc.path, nvrtc.major, nvrtc.minor, error);
  return fail(ErrorCode::kernel_compile_failed, "compiling a kernel for {} with NVRTC {}.{}: error {}: {}",
              architecture_.code, nvrtc.major, nvrtc.minor, compiled.result, error.empty() ? "no message" : error);
}

Result<std::vector<std::byte>> NvrtcCompiler::compile_anew(const CompileRequest& request) const {
  LATHE_ASSIGN(const Compiled compiled, toolchain_->compile(request));
  LATHE_TRY(check(compiled));
  LATHE_TRY(check_spills(compiled.log));
  const std::span<const std::byte> code = std::as_bytes(std::span(compiled.code));
  return std::vector<std::byte>(code.begin(), code.end());
}

}  // namespace lathe::cuda
