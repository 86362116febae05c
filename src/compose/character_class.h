// SPDX-License-Identifier: Apache-2.0
// Sets of characters in regular expressions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compose/pattern.h"

namespace lathe {

using Ranges = std::vector<CodeRange>;

constexpr uint32_t kLastCode = 0x10ffff;

bool is_word(uint32_t code);  // a letter of ASCII, a digit or _

Ranges united(Ranges ranges);   // sorted, and apart
Ranges all_but(Ranges ranges);  // likewise

// Of ASCII's letters both cases, and what Unicode counts among their cases.
Ranges with_other_case(Ranges ranges);

std::optional<Ranges> escaped_class(char letter);          // of \d, \D, \s, \S, \w and \W
std::optional<Ranges> named_class(std::string_view name);  // of [:alpha:] and others, [:^alpha:] too

}  // namespace lathe
