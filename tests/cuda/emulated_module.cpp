// SPDX-License-Identifier: Apache-2.0
#include "cuda/emulated_module.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emulated_compiler.h"
#include "kernels/cuda/headers.h"

namespace lathe::cuda {

Result<std::vector<std::byte>> compile_for_emulator(std::string_view source) {
  std::map<std::string, std::string> texts;
  for (const Header& header : headers()) texts[header.name] = header.text;
  const emulator::Compiled compiled = emulator::compile(std::string(source), texts);
  if (!compiled.ok) return fail(ErrorCode::internal, "device code does not compile:\n{}\n{}", compiled.log, source);
  const auto* bytes = reinterpret_cast<const std::byte*>(compiled.object.data());
  return std::vector<std::byte>(bytes, bytes + compiled.object.size());
}

Result<std::unique_ptr<EmulatedModule>> EmulatedModule::load(std::span<const std::byte> object) {
  const int file = memfd_create("emulated kernel", MFD_CLOEXEC);
  if (file < 0 || write(file, object.data(), object.size()) != static_cast<ssize_t>(object.size()))
    return fail(ErrorCode::internal, "no memory file for a kernel");
  auto module = std::make_unique<EmulatedModule>();
  module->library_ = dlopen(fmt::format("/proc/self/fd/{}", file).c_str(), RTLD_NOW | RTLD_LOCAL);
  module->file_ = file;  // stays open: the loader knows libraries by their path, which holds its number
  if (!module->library_) return fail(ErrorCode::internal, "dlopen: {}", dlerror());
  module->function_ = dlsym(module->library_, "lathe_kernel");
  const void* parameters = dlsym(module->library_, "lathe_kernel_parameters");
  if (!module->function_ || !parameters) return fail(ErrorCode::internal, "the object holds no kernel");
  module->parameters_ = *static_cast<const unsigned*>(parameters);
  return module;
}

EmulatedModule::~EmulatedModule() {
  if (library_) dlclose(library_);
  if (file_ >= 0) close(file_);
}

Result<> EmulatedModule::launch(std::array<int64_t, 3> grid, uint32_t block, uint32_t shared_bytes,
                                std::span<const uint64_t> arguments) const {
  using Launch = int (*)(void*, const unsigned*, unsigned, unsigned, void**, unsigned, unsigned);
  using Error = const char* (*)();
  const auto launch = reinterpret_cast<Launch>(dlsym(library_, "lathe_emulate_launch"));
  const auto error = reinterpret_cast<Error>(dlsym(library_, "lathe_emulate_error"));
  if (!launch || !error) return fail(ErrorCode::internal, "the kernel is not linked to the emulator");
  if (arguments.size() != parameters_)
    return fail(ErrorCode::internal, "{} arguments given, the kernel takes {}", arguments.size(), parameters_);
  std::vector<void*> pointers;
  for (const uint64_t& argument : arguments) pointers.push_back(const_cast<uint64_t*>(&argument));
  const unsigned blocks[3] = {static_cast<unsigned>(grid[0]), static_cast<unsigned>(grid[1]),
                              static_cast<unsigned>(grid[2])};
  if (launch(function_, blocks, block, shared_bytes, pointers.data(), parameters_, 1) != 0)
    return fail(ErrorCode::execution_failed, "emulator: {}", error());
  return {};
}

}  // namespace lathe::cuda
