// SPDX-License-Identifier: Apache-2.0
#include "runtime/known_sizes.h"

#include <algorithm>

namespace lathe {

KnownSizes::KnownSizes(size_t most, std::span<const Symbol> symbols) : most_(most) {
  for (SymbolId id = 0; id < symbols.size(); ++id)
    if (symbols[id].source != SymbolSource::computed) inputs_.push_back(id);
}

// Puts the set of sizes in front; false where it is not there.
bool KnownSizes::find_place(std::span<const int64_t> values) {
  const auto has = [&](const std::unique_ptr<Known>& known) {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (known->sizes[i] != values[inputs_[i]]) return false;
    return true;
  };
  const auto found = std::ranges::find_if(entries_, has);
  if (found == entries_.end()) return false;
  std::rotate(entries_.begin(), found, found + 1);
  return true;
}

const KnownSizes::Entry* KnownSizes::find(std::span<const int64_t> values) {
  return find_place(values) ? &entries_.front()->entry : nullptr;
}

void KnownSizes::keep(std::span<const int64_t> values, Entry entry) {
  if (!find_place(values)) {
    auto known = std::make_unique<Known>();
    for (const SymbolId id : inputs_) known->sizes.push_back(values[id]);
    if (entries_.size() == most_) entries_.pop_back();
    entries_.insert(entries_.begin(), std::move(known));
  }
  entries_.front()->entry = std::move(entry);
}

}  // namespace lathe
