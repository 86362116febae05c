// SPDX-License-Identifier: Apache-2.0
// What a context has found out about the sizes that its runs had last, so that sizes which take turns are worked out
// once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/context_memory.h"
#include "runtime/execution.h"
#include "runtime/recent_keys.h"

namespace lathe {

// One thread at a time, as the context that owns it.
class KnownSizes {
 public:
  // Everything that follows from one set of sizes and the kernels that run with them.
  struct Entry {
    uint64_t kernels = 0;  // SpecializedKernels::id(); 0 = those for open sizes
    std::shared_ptr<PreparedSteps> steps;
    ContextMemory::Placement memory;
  };

  // Of so many sets of sizes, for a plan with these symbols.
  KnownSizes(size_t most, std::span<const Symbol> symbols);
  void forget();
  // Of these values of all symbols, of which those that are computed while running do not count; null = not known.
  // Valid until the next call.
  const Entry* find(std::span<const int64_t> values);
  // The set that was not looked for the longest gives way.
  void keep(std::span<const int64_t> values, Entry entry);

 private:
  std::optional<size_t> find_place(std::span<const int64_t> values);

  std::vector<SymbolId> inputs_;  // symbols that inputs determine
  std::vector<int64_t> sizes_;    // their values, of find_place()
  RecentKeys keys_;
  std::vector<Entry> entries_;  // by place
};

}  // namespace lathe
