// SPDX-License-Identifier: Apache-2.0
// What the page of an engine consists of, each as HTML or SVG.
#pragma once

#include <fmt/core.h>

#include "engine_report.h"

namespace lathe::cli {

extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

// Kernels that take most of the time have colours of their own, the others share the last one.
class KernelColours {
 public:
  static constexpr size_t kColours = 9;
  explicit KernelColours(const Json& engine);
  size_t of(const Json& layer) const;  // 0 to kColours - 1: class "k0", ...

  struct Row {
    std::string kernel;
    size_t steps = 0;
    double milliseconds = 0, share = 0, operations = 0, bytes = 0, floor = 0;
  };
  const std::vector<Row>& rows() const { return rows_; }  // the longest time first

 private:
  std::vector<Row> rows_;
};

std::string escaped(std::string_view text);  // for contents and for attributes in quotes
std::string time_text(double milliseconds);  // "12.3 us"; "" for 0
std::string count_text(double number);       // "1.23 G"
// How many times one is the other, "1.2" or "3.45 k"; empty where one is not known.
std::string ratio_text(double number, double of);
std::string type_text(const Json& tensor);  // "f32 1x64x56x56, channels-last"
// A cell of a table whose attributes hold the number as it is, under its name in the JSON.
std::string number_cell(const char* key, const Json& number, std::string_view shown);

// The layer itself, or one that has nothing but its name.
Json as_object(const Json& layer);

std::string steps_section(const Json& engine, const KernelColours& colours);     // a row for each step
std::string lanes_svg(const Json& engine);                                       // what lies between steps, beside them
std::string panels(const Json& engine);                                          // one for each step: everything
std::string roofline_section(const Json& engine, const KernelColours& colours);  // empty where no rates are known
std::string memory_section(const Json& engine);                                  // the arena from step to step
std::string copies_section(const Json& engine);
std::string attention_section(const Json& engine);  // softmaxes that became none; empty = there are none

// Of the table of steps, in pixels, on which the lanes rely.
inline constexpr int kRowHeight = 26;
int lanes_width(const Json& engine);

}  // namespace lathe::cli
