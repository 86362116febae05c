// SPDX-License-Identifier: Apache-2.0
// What work costs a device before it is known which kernels do it: the one formula by which fusions and layouts are
// decided. Each decision compares two ways to the same values and keeps both numbers for people who ask.
#pragma once

#include "device/target.h"
#include "ir/graph.h"

namespace lathe {

struct Work {
  double bytes = 0;         // read from memory and written to it
  double instructions = 0;  // of fusion programs, each for one element, or multiplications
  double steps = 0;         // that are launched
};

// The time that they take one after the other.
double microseconds(const Work& work, const Target& target);

class CostModel {
 public:
  struct Way {
    std::string_view what;  // "stored"
    Work work;
  };
  struct Decision {
    const ir::Value* value = nullptr;
    std::string text;  // "stored: 1.234 us; computed again by each reader: 2.345 us"; what was taken comes first
  };

  // `optimum`: the symbols' values for which bytes are counted.
  explicit CostModel(Target target, std::vector<int64_t> optimum = {})
      : target_(std::move(target)), optimum_(std::move(optimum)) {}

  double bytes_of(const ir::Value* value) const;
  double at_optimum(const Expr& size) const;
  double microseconds(const Work& work) const { return lathe::microseconds(work, target_); }
  // Whether the value is to be had by `way`, which costs less than what would be done otherwise. Kept as a decision.
  bool pays(const ir::Value* value, const Way& way, const Way& otherwise);
  const std::vector<Decision>& decisions() const { return decisions_; }

 private:
  const Target target_;
  const std::vector<int64_t> optimum_;
  std::vector<Decision> decisions_;
};

}  // namespace lathe
