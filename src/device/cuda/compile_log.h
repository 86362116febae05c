// SPDX-License-Identifier: Apache-2.0
// What NVRTC and ptxas say about a compilation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lathe::cuda {

// The most that any kernel of the module uses.
struct Resources {
  int registers = 0;
  int64_t stack_bytes = 0;
  int64_t spill_store_bytes = 0, spill_load_bytes = 0;
};

// From the lines that ptxas prints with -v.
Resources parse_resources(std::string_view log);

// The first line that reports an error; the first line at all where none does.
std::string first_error(std::string_view log);

}  // namespace lathe::cuda
