// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/emulated_module.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "emulated_compiler.h"
#include "fake_cuda/open_object.h"
#include "kernels/cuda/headers.h"

namespace lathe::cuda {

namespace {

std::map<std::string, std::string> header_texts() {
  std::map<std::string, std::string> texts;
  for (const Header& header : headers()) texts[header.name] = header.text;
  return texts;
}

std::vector<std::byte> to_bytes(const std::vector<char>& object) {
  const auto* bytes = reinterpret_cast<const std::byte*>(object.data());
  return {bytes, bytes + object.size()};
}

}  // namespace

Result<std::vector<std::byte>> compile_for_emulator(std::string_view source) {
  const emulator::Compiled compiled = emulator::compile(std::string(source), header_texts());
  if (!compiled.ok) return fail(ErrorCode::internal, "device code does not compile:\n{}\n{}", compiled.log, source);
  return to_bytes(compiled.object);
}

Result<> EmulatedBatch::compile(const std::vector<std::string>& sources) {
  constexpr size_t kTogether = 24;  // more take the compiler longer than their share
  std::vector<std::vector<std::string>> parts;
  for (const std::string& source : std::set<std::string>(sources.begin(), sources.end())) {
    if (objects_.contains(source)) continue;
    if (parts.empty() || parts.back().size() == kTogether) parts.emplace_back();
    parts.back().push_back(source);
  }
  const std::map<std::string, std::string> texts = header_texts();
  std::vector<std::vector<emulator::Compiled>> results(parts.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i; (i = next++) < parts.size();) results[i] = emulator::compile_together(parts[i], texts);
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < std::min<size_t>(std::thread::hardware_concurrency(), parts.size()); ++i)
      threads.emplace_back(work);
    work();
  }
  for (size_t i = 0; i < parts.size(); ++i)
    for (size_t k = 0; k < parts[i].size(); ++k) {
      if (!results[i][k].ok) return fail(ErrorCode::internal, "device code does not compile:\n{}", results[i][k].log);
      objects_[parts[i][k]] = to_bytes(results[i][k].object);
    }
  return {};
}

const std::vector<std::byte>* EmulatedBatch::find(const std::string& source) const {
  const auto it = objects_.find(source);
  return it == objects_.end() ? nullptr : &it->second;
}

Result<std::unique_ptr<EmulatedModule>> EmulatedModule::load(std::span<const std::byte> object) {
  auto module = std::make_unique<EmulatedModule>();
  const std::string_view text(reinterpret_cast<const char*>(object.data()), object.size());
  std::string suffix;
  if (text.starts_with("\x7f")) {  // ELF
    module->library_ = fake_cuda::open_object(object.data(), object.size());
  } else {  // the place of one of a batch
    const std::string path(text.substr(0, text.rfind(' ')));
    suffix = text.substr(path.size() + 1);
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
