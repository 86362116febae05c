// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace lathe::cli {

// `lathe quantize` and what can be said behind it; `chosen` becomes what is to be done.
void add_quantize(CLI::App& app, std::function<int()>& chosen);

}  // namespace lathe::cli
