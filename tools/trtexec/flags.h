// SPDX-License-Identifier: Apache-2.0
// The table of flags.def, and what can be asked of it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trtexec/options.h"

namespace lathe::trtexec {

enum class FlagSection { model, build, tuning, inference, reporting, system, ours };
enum class FlagOrigin { both, ten, eleven, older, lathe };
enum class FlagHandling { honoured, warned, refused };

// What it does to the options; throws cli::UsageError.
using FlagSetter = std::function<void(Options& options, std::string_view flag, std::string_view value)>;

struct CommandFlag {
  FlagSection section;
  std::string_view name;
  FlagOrigin origin;
  std::string_view argument;  // empty: it takes none, or may be left out
  FlagSetter set;
  FlagHandling handling;
  std::string_view words;
  std::string_view help;
};

const std::vector<CommandFlag>& all_flags();
const CommandFlag* find_flag(std::string_view name);
const CommandFlag& nearest_flag(std::string_view name);  // by the letters to change

std::string help_text();
std::string help_table();  // Markdown

// Reads the words after the program's name. Throws cli::UsageError.
Options parse_words(const std::vector<std::string>& words);

}  // namespace lathe::trtexec
