// SPDX-License-Identifier: Apache-2.0
#include "trtexec/flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "cli/failure.h"
#include "trtexec/setters.h"

namespace lathe::trtexec {
namespace {

using cli::UsageError;

constexpr std::pair<FlagSection, std::string_view> kSections[] = {
    {FlagSection::model, "Model Options"},         {FlagSection::build, "Build Options"},
    {FlagSection::tuning, "Build Route Tuning"},   {FlagSection::inference, "Inference Options"},
    {FlagSection::reporting, "Reporting Options"}, {FlagSection::system, "System Options"},
    {FlagSection::ours, "Lathe's Own Options"}};

std::string_view origin_text(FlagOrigin origin) {
  switch (origin) {
    case FlagOrigin::both:
      return "10, 11";
    case FlagOrigin::ten:
      return "10";
    case FlagOrigin::eleven:
      return "11";
    case FlagOrigin::older:
      return "8";
    default:
      return "Lathe";
  }
}

std::string_view handling_text(FlagHandling handling) {
  return handling == FlagHandling::honoured ? "honoured" : handling == FlagHandling::warned ? "warning" : "refused";
}

// Letters to insert, remove or change, case aside.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (lower(a[i]) != lower(b[j]) ? 1 : 0);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string spelled(const CommandFlag& flag) {
  return flag.argument.empty() ? std::string(flag.name) : fmt::format("{}={}", flag.name, flag.argument);
}

// Wrapped after `width` columns, lines after the first indented.
std::string wrapped(std::string_view text, size_t indent, size_t width) {
  std::string out, line;
  for (const std::string& word : words(text, ' ')) {
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      out += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + line;
}

std::string explained(const CommandFlag& flag) {
  if (flag.handling == FlagHandling::honoured) return fmt::format("{} [{}]", flag.help, origin_text(flag.origin));
  return fmt::format("{} [{}; {}: {}]", flag.help, origin_text(flag.origin), handling_text(flag.handling), flag.words);
}

[[noreturn]] void refuse_unknown(std::string_view name) {
  const CommandFlag& near = nearest_flag(name);
  throw UsageError(fmt::format("Unknown option: {}. The nearest is {} ({}), which does this: {}", name, near.name,
                               origin_text(near.origin), near.help));
}

void apply(Options& options, const CommandFlag& flag, std::string_view value) {
  if (flag.handling == FlagHandling::refused) throw UsageError(fmt::format("{} is refused: {}", flag.name, flag.words));
  if (flag.handling == FlagHandling::warned) options.warnings.push_back(fmt::format("{}: {}", flag.name, flag.words));
  flag.set(options, flag.name, value);
}

// The flags that may stand without the value that they can be given.
bool may_have_value(const CommandFlag& flag) {
  return !flag.argument.empty() || flag.name == "--help" || flag.name == "--helpBuildRoute";
}

void check(const Options& options) {
  if (!options.help.empty() || !options.help_route.empty()) return;
  if (options.onnx.empty() && options.load_engine.empty())
    throw UsageError("there is no model: give one with --onnx=FILE, or an engine with --loadEngine=FILE");
  if (options.plan_version_only && options.load_engine.empty())
    throw UsageError("--getPlanVersionOnly needs --loadEngine=FILE");
  if (options.fp16 && options.bf16)
    throw UsageError("--fp16 (also in --best) and --bf16: float32 can be narrowed to one of them");
  if (options.use_runtime != "full" && options.load_engine.empty())
    throw UsageError("--useRuntime=lean and dispatch need --loadEngine: the full library alone builds engines");
  if (!options.lean_runtime_in_plan && !options.version_compatible)
    throw UsageError("--excludeLeanRuntime needs --versionCompatible: other plans hold no runtime");
  for (const std::string& format : options.debug_formats)
    if (format != "summary" && format != "numpy" && format != "string" && format != "raw")
      throw UsageError(fmt::format("--saveAllDebugTensors: '{}' is none of summary, numpy, string, raw", format));
}

}  // namespace

const std::vector<CommandFlag>& all_flags() {
  using namespace setters;  // NOLINT: the rows are made of them
  static const std::vector<CommandFlag> flags = {
#define TRTEXEC_FLAG(section, name, origin, argument, setter, handling, words, help) \
  {FlagSection::section, name, FlagOrigin::origin, argument, setter, FlagHandling::handling, words, help},
#include "trtexec/flags.def"
#undef TRTEXEC_FLAG
  };
  return flags;
}

const CommandFlag* find_flag(std::string_view name) {
  for (const CommandFlag& flag : all_flags())
    if (flag.name == name) return &flag;
  return nullptr;
}

const CommandFlag& nearest_flag(std::string_view name) {
  return *std::min_element(all_flags().begin(), all_flags().end(), [&](const CommandFlag& a, const CommandFlag& b) {
    return distance(name, a.name) < distance(name, b.name);
  });
}

std::string help_text() {
  constexpr size_t kIndent = 38, kWidth = 120;
  std::string text =
      "Builds an engine from an ONNX model, or loads one, runs it and measures it: the command line of TensorRT's "
      "trtexec.\nAt the end of each flag: the generations that have it, and what becomes of it where it is not simply "
      "honoured.\n";
  for (const auto& [section, title] : kSections) {
    text += fmt::format("\n=== {} ===\n", title);
    for (const CommandFlag& flag : all_flags()) {
      if (flag.section != section) continue;
      const std::string name = spelled(flag);
      const std::string gap =
          name.size() + 3 <= kIndent ? std::string(kIndent - 2 - name.size(), ' ') : "\n" + std::string(kIndent, ' ');
      text += "  " + name + gap + wrapped(explained(flag), kIndent, kWidth - kIndent) + "\n";
    }
  }
  return text;
}

std::string help_table() {
  std::string text;
  for (const auto& [section, title] : kSections) {
    text += fmt::format("\n### {}\n\n| flag | of | what it does | |\n| --- | --- | --- | --- |\n", title);
    for (const CommandFlag& flag : all_flags())
      if (flag.section == section)
        text += fmt::format("| `{}` | {} | {} | {}{}{} |\n", spelled(flag), origin_text(flag.origin), flag.help,
                            handling_text(flag.handling), flag.words.empty() ? "" : ": ", flag.words);
  }
  return text;
}

Options parse_words(const std::vector<std::string>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const CommandFlag* flag = find_flag(name);
    if (!flag) refuse_unknown(name);
    if (equals != std::string_view::npos) {
      if (!may_have_value(*flag)) throw UsageError(fmt::format("{} takes no value, but was given '{}'", name, word));
      apply(options, *flag, word.substr(equals + 1));
    } else if (flag->argument.empty()) {
      apply(options, *flag, "");
    } else {
      const bool given = i + 1 < arguments.size() && !arguments[i + 1].starts_with("--");
      if (!given) throw UsageError(fmt::format("{} needs a value: {}", name, spelled(*flag)));
      apply(options, *flag, arguments[++i]);
    }
  }
  check(options);
  return options;
}

}  // namespace lathe::trtexec
