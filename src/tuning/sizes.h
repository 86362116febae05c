// SPDX-License-Identifier: Apache-2.0
// Problems of open sizes as they are at other sizes than those that they are tuned for.
#pragma once

#include <optional>
#include <span>

#include "tuning/problem.h"

namespace lathe {

// Tuned for other values of its symbols; nullopt = with these a dimension has no elements, or no value.
std::optional<Problem> with_symbols(const Problem& problem, std::span<const int64_t> symbols);

// Tuned for at least so many of `rows`, less than twice as many where one symbol can make them so, which is set anew;
// nullopt as above, or where they are known.
std::optional<Problem> with_rows(const Problem& problem, const Expr& rows, int64_t count);

}  // namespace lathe
