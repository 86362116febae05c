// SPDX-License-Identifier: Apache-2.0
// The emulator as a device and a compiler, without a driver between: for tests of kernels. Blocks of memory end at a
// page that faults, so that kernels that leave their tensors are found out.
#pragma once

#include "device/device.h"
#include "tuning/problem.h"

namespace lathe::cuda {

struct Backend;

inline constexpr const char* kEmulator = "cuda-emulator";  // its Device::target()

std::unique_ptr<Device> make_emulated_device();
// One whose kernels compute nothing, for the child that only notes kernels. It notes those that a build measures, and
// for each choice the first that is checked, which is the one that is right elsewhere.
std::unique_ptr<Device> make_idle_device();
std::unique_ptr<Compiler> make_emulated_compiler();

// What kernels are tested on: the emulator, or the GPU that LATHE_TEST_DEVICE names ("cuda:0") with the real compiler.
std::shared_ptr<Device> test_device();
std::unique_ptr<Compiler> test_compiler();
// Both, made once for the process.
const Backend& test_backend();
Target test_target();  // of its device

}  // namespace lathe::cuda
