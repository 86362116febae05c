// SPDX-License-Identifier: Apache-2.0
// Problems of open sizes as they are at other sizes than those that they are tuned for.
#pragma once

#include <optional>
#include <span>

#include "tuning/problem.h"

namespace lathe {

// Tuned for other values of its symbols; nullopt = with these a dimension has no elements, or no value.
std::optional<Problem> with_symbols(const Problem& problem, std::span<const int64_t> symbols);

// Tuned for at least so many of `rows`, of which one symbol is made larger; nullopt as above, or they are known and
// fewer.
std::optional<Problem> with_rows(const Problem& problem, const Expr& rows, int64_t count);

}  // namespace lathe
