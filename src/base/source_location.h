// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <experimental/source_location>

namespace lathe {

// A place in our own sources: file, line and function. The standard's type of that name needs a builtin that clang 14,
// which clang-tidy is of, does not have; its predecessor, of the same members, works in every compiler of ours.
using SourceLocation = std::experimental::source_location;

}  // namespace lathe
