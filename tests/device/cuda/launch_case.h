// SPDX-License-Identifier: Apache-2.0
// A step of one launch for the stand-in driver, to be changed by tests: kernel `add`(in, out, workspace, n).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "device/kernel.h"

namespace lathe::cuda {

struct LaunchCase {
  std::string text = "FAKE_CUBIN sm_90\nkernel add 4\nkernel small 0 threads=64\nkernel shared 0 shared=4096\n";
  std::vector<std::byte> code;
  std::vector<std::span<const std::byte>> modules;
  std::vector<Launch> launches{1};
  Expr workspace = Expr(1024);
  TensorArg input, output;
  std::vector<int64_t> symbols{7};

  LaunchCase() {
    Launch& launch = launches[0];
    launch.entry = "add";
    launch.grid = {ceildiv(Expr::symbol(0), Expr(4)), Expr(2), Expr(1)};
    launch.block = 128;
    launch.args = {{LaunchArg::input, 0, {}},
                   {LaunchArg::output, 0, {}},
                   {LaunchArg::workspace, 0, Expr(256)},
                   {LaunchArg::number, 0, Expr::symbol(0) * Expr(3)}};
    input.data = reinterpret_cast<void*>(0x1000);
    output.data = reinterpret_cast<void*>(0x2000);
  }

  StepRecord record() {
    code.assign(text.size() + 1, std::byte{0});
    std::transform(text.begin(), text.end(), code.begin(), [](char c) { return static_cast<std::byte>(c); });
    modules = {code};
    StepRecord step;
    step.kernel = "launch";
    step.launches = launches;
    step.workspace = &workspace;
    step.code = modules;
    return step;
  }
  Operands operands() const { return {{&input, 1}, {&output, 1}, symbols}; }
};

}  // namespace lathe::cuda
