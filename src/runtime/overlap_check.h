// SPDX-License-Identifier: Apache-2.0
// Tensors of the application's whose memory is shared, where results would be wrong.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace lathe {

// Steps read and write bindings in an order of their own: an output that lies over an input, or over another output,
// would be read or kept wrong. Allowed are inputs that share memory, and an output at the address of the input that it
// updates in place (plan::aliased_input()). One thread at a time; the plan outlives it.
class OverlapCheck {
 public:
  struct Range {
    const std::byte* begin;  // null = no memory yet
    size_t bytes;
    uint32_t binding;
  };

  explicit OverlapCheck(const plan::Plan& plan) : plan_(plan), pairs_(plan.bindings.size()) {}

  // Fails where an output lies over another tensor. Takes the ranges of all bindings, and sorts them.
  Result<> check(std::vector<Range>& ranges);

 private:
  bool is_output(const Range& range) const { return !plan_.bindings[range.binding].is_input; }
  std::optional<uint32_t> input_of(uint32_t output);
  void merge_pairs(std::vector<Range>& ranges);
  Result<> refuse(const Range& output, const Range& other) const;

  const plan::Plan& plan_;
  struct Pair {
    bool is_known = false;
    std::optional<uint32_t> input;
  };
  std::vector<Pair> pairs_;  // by binding; the plan is searched when one is asked for
};

}  // namespace lathe
