// SPDX-License-Identifier: Apache-2.0
// A toolchain of worker processes with a stand-in for NVRTC that can be told to misbehave (FAKE_NVRTC_FAULT).
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "device/cuda/nvrtc_compiler.h"
#include "device/cuda/toolchain.h"
#include "fake_cuda/fake_device.h"
#include "fixtures/warnings.h"

namespace lathe::cuda {

// The processes whose parent that is.
inline std::set<pid_t> children(pid_t of = ::getpid()) {
  std::set<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string id, name, state, parent;
    if (file >> id >> name >> state >> parent && parent == std::to_string(of) && state != "Z")
      found.insert(std::atoi(id.c_str()));
  }
  return found;
}

inline size_t descriptors() {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

inline CompileRequest kernel(const std::string& text) {
  return {fmt::format("// {}\n#include \"lib/tensor.cuh\"\nLATHE_KERNEL(64, 1) void lathe_kernel() {{}}\n", text),
          {{"lib/tensor.cuh", "#define LATHE_KERNEL(threads, blocks) extern \"C\"\n"}},
          {"--gpu-architecture=sm_90a"}};
}

class ToolchainTest : public testing::Test {
 protected:
  void SetUp() override {
    descriptors_ = descriptors();
    options_.nvrtc = {FAKE_NVRTC};
    options_.workers = 2;
    options_.log = &log_;
    unsetenv("LATHE_COMPILER");
  }
  // No process and no descriptor is left over.
  void TearDown() override {
    unsetenv("FAKE_NVRTC_FAULT");
    EXPECT_EQ(children(), std::set<pid_t>());
    EXPECT_EQ(descriptors(), descriptors_);
  }
  std::unique_ptr<Toolchain> open() {
    Result<std::unique_ptr<Toolchain>> toolchain = open_toolchain(options_);
    EXPECT_TRUE(toolchain) << toolchain.error().to_string();
    return toolchain ? *std::move(toolchain) : nullptr;
  }
  // Whether a kernel that is none of the faulty ones compiles.
  static bool compiles(Toolchain& toolchain, const std::string& text = "fine") {
    const Result<Compiled> compiled = toolchain.compile(kernel(text));
    EXPECT_TRUE(compiled) << compiled.error().to_string();
    return compiled && compiled->result == NVRTC_SUCCESS && compiled->code.starts_with("\177ELF");
  }
  // That of a source which misbehaves so; the toolchain is well afterwards.
  std::string message_of_loss(const char* fault) {
    CompilerOptions patient = options_;  // the stand-in's own compiler is slow at first, and keeps what it has made
    patient.seconds = 60;
    const auto first = open_toolchain(patient);
    EXPECT_TRUE(first && compiles(**first, "fine") && compiles(**first, "faulty"));
    setenv("FAKE_NVRTC_FAULT", fmt::format("{}:faulty", fault).c_str(), 1);
    const auto toolchain = open();
    const Result<Compiled> compiled = toolchain->compile(kernel("faulty"));
    EXPECT_FALSE(compiled);
    if (compiled) return "";
    EXPECT_EQ(compiled.error().code, ErrorCode::kernel_compile_failed);
    EXPECT_TRUE(compiles(*toolchain));
    EXPECT_EQ(log_.lines, std::vector<std::string>()) << "the candidate's error says it";
    return compiled.error().message;
  }

  CompilerOptions options_;
  Warnings log_;
  size_t descriptors_ = 0;
};

}  // namespace lathe::cuda
