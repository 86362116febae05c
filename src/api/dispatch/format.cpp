// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/plain_format.h"

// All that format() and its like call of {fmt}, an eighth of what the library would be.
FMT_BEGIN_NAMESPACE
std::string vformat(string_view format, format_args args) { return lathe::plain_format(format, args); }
FMT_END_NAMESPACE
