// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/emulated_module.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emulated_compiler.h"
#include "fake_cuda/open_object.h"
#include "kernels/cuda/compiled_ahead.h"
#include "kernels/cuda/headers.h"

namespace lathe::cuda {

std::map<std::string, std::string> header_texts() {
  std::map<std::string, std::string> texts;
  for (const Header& header : headers()) texts[header.name] = header.text;
  return texts;
}

Result<std::vector<std::byte>> compile_for_emulator(std::string_view source) {
  if (only_notes_kernels()) return fail(ErrorCode::invalid_state, "{}", kOnlyNoted);
  const emulator::Compiled compiled = emulator::compile(std::string(source), header_texts());
  if (!compiled.ok) return fail(ErrorCode::internal, "device code does not compile:\n{}\n{}", compiled.log, source);
  const auto* bytes = reinterpret_cast<const std::byte*>(compiled.object.data());
  return std::vector<std::byte>(bytes, bytes + compiled.object.size());
}

Result<std::unique_ptr<EmulatedModule>> EmulatedModule::load(std::span<const std::byte> object) {
  auto module = std::make_unique<EmulatedModule>();
  const std::string_view text(reinterpret_cast<const char*>(object.data()), object.size());
  std::string suffix;
  if (text.starts_with("\x7f")) {  // ELF
    module->library_ = fake_cuda::open_object(object.data(), object.size());
  } else {  // the place of one that was compiled together with others
    const size_t space = text.rfind(' ');
    if (space == text.npos) return fail(ErrorCode::invalid_state, "{}", kOnlyNoted);
    const std::string path(text.substr(0, space));
    suffix = text.substr(space + 1);
    module->library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!module->library_) return fail(ErrorCode::internal, "dlopen: {}", dlerror());
  module->function_ = dlsym(module->library_, ("lathe_kernel" + suffix).c_str());
  const void* parameters = dlsym(module->library_, ("lathe_kernel" + suffix + "_parameters").c_str());
  if (!module->function_ || !parameters) return fail(ErrorCode::internal, "the object holds no kernel");
  module->parameters_ = *static_cast<const unsigned*>(parameters);
  return module;
}

EmulatedModule::~EmulatedModule() {
  if (library_) dlclose(library_);
}

Result<> EmulatedModule::launch(std::array<int64_t, 3> grid, uint32_t block, uint32_t shared_bytes,
                                std::span<const uint64_t> arguments, uint32_t cluster) const {
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
  if (launch(function_, blocks, block, shared_bytes, pointers.data(), parameters_, cluster) != 0)
    return fail(ErrorCode::execution_failed, "emulator: {}", error());
  return {};
}

}  // namespace lathe::cuda
