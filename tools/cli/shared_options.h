// SPDX-License-Identifier: Apache-2.0
// Options that several commands have.
#pragma once

#include <CLI/CLI.hpp>

#include "commands.h"

namespace lathe::cli {

extern const CLI::Validator kNotNegative;  // in place of CLI11's, which says what the largest double is

// Of the optimization profile.
void add_shapes(CLI::App& command, BuildSettings& settings);
// `shapes`: also those of the optimization profile.
void add_build_options(CLI::App& command, BuildSettings& settings, bool shapes);
void add_threads(CLI::App& command, BuildSettings& settings);
void add_trusted_keys(CLI::App& command, std::string& keys);
void add_runtime(CLI::App& command, RuntimeSettings& runtime);

}  // namespace lathe::cli
