// SPDX-License-Identifier: Apache-2.0
// The command line of TensorRT's trtexec: its flags, what it prints, its files and its exit status.
#pragma once

#include <string>
#include <vector>

namespace lathe::trtexec {

// `program` is what was typed before the arguments. 0 where all went well, else 1. Throws nothing.
int run_trtexec(const std::string& program, const std::vector<std::string>& arguments) noexcept;

}  // namespace lathe::trtexec
