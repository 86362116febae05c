// SPDX-License-Identifier: Apache-2.0
// Device code from CUDA C++ text, for one architecture, through the cache on disk.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/architecture.h"
#include "device/cuda/cubin_cache.h"
#include "device/cuda/include_closure.h"
#include "device/cuda/toolchain.h"
#include "device/device.h"

namespace lathe::cuda {

class NvrtcCompiler : public Compiler {
 public:
  // `target` as Device::target() says it: "cuda-sm_90". `headers` must outlive the compiler. Fails where no NVRTC is
  // found that compiles for the target.
  static Result<std::unique_ptr<NvrtcCompiler>> create(std::string_view target, std::span<const SourceHeader> headers,
                                                       const CompilerOptions& options = {},
                                                       std::string cache_folder = default_cache_folder());

  Result<std::vector<std::byte>> compile(std::string_view source) override { return compile(source, headers_); }
  Result<std::vector<std::byte>> compile(std::string_view source, std::span<const SourceHeader> headers);
  std::vector<SourceFile> headers_of(std::string_view source) const override;

 private:
  NvrtcCompiler(std::unique_ptr<Toolchain> toolchain, const Architecture& architecture,
                std::span<const SourceHeader> headers, std::string cache_folder);
  CompileRequest request_for(std::string_view source, std::span<const SourceHeader> headers) const;
  Digest key_of(const CompileRequest& request) const;
  Result<std::vector<std::byte>> compile_anew(const CompileRequest& request) const;
  Result<> check(const Compiled& compiled) const;

  const std::unique_ptr<Toolchain> toolchain_;
  const uint64_t nvrtc_build_;
  const Architecture& architecture_;
  std::span<const SourceHeader> headers_;
  std::vector<std::string> options_;
  CubinCache cache_;
};

}  // namespace lathe::cuda
