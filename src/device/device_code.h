// SPDX-License-Identifier: Apache-2.0
// Device code as a plan carries it: the same module once for each architecture, or in a form that many can use.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lathe {

// Numbers are part of the plan's format.
enum class CodeForm : uint8_t {
  binary = 1,    // a cubin: for its target alone
  assembly = 2,  // PTX, with a zero at its end: for its target and newer ones
  source = 3,    // CUDA C++: for what a compiler on the spot compiles for
};
std::string_view name_of(CodeForm form);

struct CodeImage {
  CodeForm form = CodeForm::binary;
  std::string target;                // as Device::target() says it; of source the family: "cuda-sm_90", "cuda"
  std::span<const std::byte> bytes;  // not owned
};

// A file that sources include.
struct SourceFile {
  std::string name;                  // as they include it
  std::span<const std::byte> bytes;  // not owned
};

// The images of one module, of which a device takes one. Launches are the same whichever it is.
struct CodeModule {
  std::vector<CodeImage> images;
};

// What a device runs of a module.
struct DeviceCode {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // of bytes that were made here; those of an image belong to the plan
};

// The binary for exactly this target; null when there is none.
const CodeImage* find_binary(const CodeModule& module, std::string_view target);

// Says which images there are, and that none of them is for `target`.
Error no_image(const CodeModule& module, std::string_view target);

}  // namespace lathe
