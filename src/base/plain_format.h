// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <string>

namespace lathe {

// As fmt::vformat(), of what the messages of the dispatching library have: texts, integers, characters and truth
// values, by {}, and integers without a sign by {:#x}. Throws std::invalid_argument at anything else.
std::string plain_format(fmt::string_view format, fmt::format_args args);

}  // namespace lathe
