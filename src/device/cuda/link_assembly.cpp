// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/link_assembly.h"

#include <array>
#include <cstring>

namespace lathe::cuda {
namespace {

constexpr std::string_view kDoing = "compiling PTX of the plan";

struct Link {
  PrimaryContext& context;
  CUlinkState state = nullptr;
  ~Link() {
    if (state) context.driver().cuLinkDestroy(state);
  }
};

}  // namespace

Result<std::vector<std::byte>> link_assembly(std::span<const std::byte> assembly, PrimaryContext& context) {
  if (assembly.empty() || assembly.back() != std::byte{0})
    return fail(ErrorCode::device_code_refused, "PTX of the plan does not end with a zero: build the engine again");
  if (!context.driver().has_linker()) return std::vector(assembly.begin(), assembly.end());
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(context));
  const Driver& driver = context.driver();
  std::array<char, 1024> log{};
  std::array options = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  Link link{context};
  LATHE_TRY(context.check(driver.cuLinkCreate(options.size(), options.data(), values.data(), &link.state), kDoing));
  void* cubin = nullptr;  // the link's
  size_t size = 0;
  CUresult linked = driver.cuLinkAddData(link.state, CU_JIT_INPUT_PTX, const_cast<std::byte*>(assembly.data()),
                                         assembly.size(), "plan", 0, nullptr, nullptr);
  if (linked == CUDA_SUCCESS) linked = driver.cuLinkComplete(link.state, &cubin, &size);
  Result<> done = context.check(linked, kDoing);
  if (!done) {
    Error error = std::move(done).error();
    if (log[0]) error.message.append(": ").append(log.data());
    return fail(std::move(error));
  }
  const auto* bytes = static_cast<const std::byte*>(cubin);
  return std::vector(bytes, bytes + size);
}

}  // namespace lathe::cuda
