// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/module.h"

#include <cstring>
#include <vector>

namespace lathe::cuda {
namespace {

constexpr uint32_t kMaxPlainSharedBytes = 48 << 10;  // more needs the kernel's consent
constexpr uint32_t kMaxPortableCluster = 8;
constexpr std::string_view kElf = "\177ELF";

// The driver reads a cubin as far as its headers say, and other code to the first zero: neither may lie outside.
Result<> check_code(std::span<const std::byte> code) {
  const std::string_view text(reinterpret_cast<const char*>(code.data()), code.size());
  if (text.starts_with(kElf) && text.size() >= 64) return {};
  if (!text.starts_with(kElf) && text.find('\0') != text.npos) return {};
  return fail(ErrorCode::device_code_refused,
              "{} bytes of device code are neither a cubin nor PTX: build the engine again", code.size());
}

// The driver copies as many bytes as the kernel declares, whatever it is given: they have to be as many. Tensor maps
// come first.
Result<> count_parameters(PrimaryContext& context, const std::string& name, KernelFunction& function) {
  if (!context.driver().cuFuncGetParamInfo) return {};
  for (int count = 0;; ++count) {
    size_t offset = 0, size = 0;
    const CUresult result = context.driver().cuFuncGetParamInfo(function.handle, count, &offset, &size);
    if (result == CUDA_ERROR_INVALID_VALUE) {
      function.parameters = count;
      return {};
    }
    LATHE_TRY(context.check(result, "asking for a kernel's parameters"));
    const bool is_map = size == sizeof(CUtensorMap) && function.maps == count;
    if (is_map) ++function.maps;
    if (!is_map && size != 8)
      return fail(ErrorCode::launch_refused, "kernel '{}': parameter {} has {} bytes, not 8", name, count, size);
  }
}

}  // namespace

Result<std::shared_ptr<Module>> Module::load(std::shared_ptr<PrimaryContext> context, std::span<const std::byte> code) {
  LATHE_TRY(check_code(code));
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context));
  CUmodule handle = nullptr;
  LATHE_TRY(context->check(context->driver().cuModuleLoadData(&handle, code.data()), "loading device code"));
  return std::shared_ptr<Module>(new Module(std::move(context), handle));
}

Module::~Module() {
  const ContextScope scope(*context_);
  const Driver& driver = context_->driver();
  context_->follow_all(context_->releases());
  driver.cuStreamSynchronize(context_->releases());  // kernels that still run
  driver.cuModuleUnload(handle_);
}

Result<KernelFunction> Module::find(const std::string& name) {
  const Driver& driver = context_->driver();
  KernelFunction function;
  LATHE_TRY(context_->check(driver.cuModuleGetFunction(&function.handle, handle_, name.c_str()),
                            fmt::format("finding the kernel '{}'", name)));
  const std::pair<CUfunction_attribute, int*> wanted[] = {
      {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &function.max_threads},
      {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &function.static_shared_bytes},
      {CU_FUNC_ATTRIBUTE_PTX_VERSION, &function.architecture}};
  for (const auto& [attribute, value] : wanted)
    LATHE_TRY(
        context_->check(driver.cuFuncGetAttribute(value, attribute, function.handle), "asking for a kernel's limits"));
  LATHE_TRY(count_parameters(*context_, name, function));
  return function;
}

Result<> Module::set(CUfunction function, CUfunction_attribute attribute, uint32_t value, const std::string& name) {
  return context_->check(context_->driver().cuFuncSetAttribute(function, attribute, static_cast<int>(value)),
                         fmt::format("setting up the kernel '{}'", name));
}

Result<KernelFunction> Module::function(const std::string& name) {
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context_));
  const std::lock_guard lock(mutex_);
  const auto known = functions_.find(name);
  if (known != functions_.end()) return known->second.function;
  LATHE_ASSIGN(const KernelFunction function, find(name));
  functions_.emplace(name, Entry{function});
  return function;
}

Result<> Module::allow(const std::string& name, uint32_t shared_bytes, uint32_t cluster) {
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context_));
  const std::lock_guard lock(mutex_);
  const auto known = functions_.find(name);
  LATHE_CHECK(known != functions_.end());
  Entry& entry = known->second;
  const int64_t all_shared = int64_t{shared_bytes} + entry.function.static_shared_bytes;
  if (all_shared > kMaxPlainSharedBytes && shared_bytes > entry.shared_bytes) {
    LATHE_TRY(set(entry.function.handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes, name));
    entry.shared_bytes = shared_bytes;
  }
  if (cluster > kMaxPortableCluster && cluster > entry.cluster) {
    LATHE_TRY(set(entry.function.handle, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, name));
    entry.cluster = cluster;
  }
  return {};
}

}  // namespace lathe::cuda
