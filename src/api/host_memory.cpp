// SPDX-License-Identifier: Apache-2.0
#include "api/host_memory.h"

namespace lathe::api {

HostMemory* HostMemory::of_text(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.c_str());
  auto* memory = new HostMemory(std::span(begin, text.size() + 1));
  memory->terminator_ = 1;
  return memory;
}

}  // namespace lathe::api
