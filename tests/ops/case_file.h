// SPDX-License-Identifier: Apache-2.0
// Files of op cases, tests/ops/*.case: a list of blocks, one per evaluation:
//   # comment
//   op elementwise {op=add}
//   in f32[2]{1, 2}            (or: in none, for an omitted input)
//   in f32[1]{3}
//   tolerance 1e-6             (absolute and relative; without it results must be equal)
//   out f32[2]{4, 5}           (or: error shape_mismatch)
//   computed                   (only running can tell the output dims from symbolic input dims)
// A line that starts with a space continues the line before.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "ops/op.h"
#include "source_dir.h"

namespace lathe {

struct Case {
  int line = 0;
  std::unique_ptr<Attributes> attributes;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::string error;
  double tolerance = 0;
  bool computed = false;
};

struct Line {
  int number;
  std::string text;
};

inline std::vector<Line> read_lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<Line> lines;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    if (text.empty() || text[0] == '#') continue;
    if (text[0] == ' ' && !lines.empty())
      lines.back().text += text;
    else
      lines.push_back({number, text});
  }
  return lines;
}

inline Result<Tensor> read_tensor(std::string_view text) {
  if (text == "none") return Tensor();
  LATHE_ASSIGN(Tensor tensor, parse_tensor(text));
  if (text.find_first_not_of(' ') != std::string_view::npos)
    return fail(ErrorCode::text_syntax, "text after the tensor: '{}'", text);
  return tensor;
}

inline Result<> read_line(const Line& line, std::vector<Case>& cases) {
  const size_t space = line.text.find(' ');
  const std::string keyword = line.text.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : line.text.substr(space + 1);
  if (keyword == "op") {
    const size_t end = rest.find(' ');
    const OpInfo* info = find_op(rest.substr(0, end));
    if (!info) return fail(ErrorCode::text_syntax, "there is no op '{}'", rest);
    Case& added = cases.emplace_back();
    added.line = line.number;
    LATHE_ASSIGN(added.attributes, parse_attributes(info->kind, end == std::string::npos ? "" : rest.substr(end)));
    return {};
  }
  if (cases.empty()) return fail(ErrorCode::text_syntax, "'{}' before the first op", keyword);
  Case& current = cases.back();
  if (keyword == "in" || keyword == "out") {
    LATHE_ASSIGN((keyword == "in" ? current.inputs : current.outputs).emplace_back(), read_tensor(rest));
  } else if (keyword == "error") {
    current.error = rest;
  } else if (keyword == "computed") {
    current.computed = true;
  } else if (keyword == "tolerance") {
    current.tolerance = std::stod(rest);
  } else {
    return fail(ErrorCode::text_syntax, "unknown keyword '{}'", keyword);
  }
  return {};
}

inline Result<std::vector<Case>> read_cases(const std::string& path) {
  std::vector<Case> cases;
  for (const Line& line : read_lines(path)) {
    const Result<> read = read_line(line, cases);
    if (!read) return fail(with_context(read.error(), fmt::format("{}:{}", path, line.number)));
  }
  return cases;
}

inline bool near(double got, double want, double tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  if (got == want) return true;
  return std::fabs(got - want) <= tolerance + tolerance * std::fabs(want);
}

inline void expect_tensor(const Tensor& got, const Tensor& want, double tolerance, size_t output) {
  ASSERT_EQ(name_of(got.dtype()), name_of(want.dtype())) << "output " << output;
  ASSERT_EQ(got.dims(), want.dims()) << "output " << output;
  bool equal = true;
  for (int64_t i = 0; i < got.volume(); ++i)
    equal &= is_floating(want.dtype()) ? near(got.at_double(i), want.at_double(i), tolerance) : got.at(i) == want.at(i);
  EXPECT_TRUE(equal) << "output " << output << "\n  got  " << to_text(got) << "\n  want " << to_text(want);
}

inline std::vector<std::string> case_files() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("/tests/ops")))
    if (entry.path().extension() == ".case") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace lathe
