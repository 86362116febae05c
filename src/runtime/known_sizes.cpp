// SPDX-License-Identifier: Apache-2.0
#include "runtime/known_sizes.h"

#include <algorithm>

namespace lathe {

KnownSizes::KnownSizes(size_t most, std::span<const Symbol> symbols) {
  for (SymbolId id = 0; id < symbols.size(); ++id)
    if (symbols[id].source != SymbolSource::computed) inputs_.push_back(id);
  sizes_.resize(inputs_.size());
  keys_.hold_most(most, inputs_.size());
  entries_.resize(most);
}

void KnownSizes::forget() {
  keys_.forget();
  std::ranges::fill(entries_, Entry());
}

std::optional<size_t> KnownSizes::find_place(std::span<const int64_t> values) {
  for (size_t i = 0; i < inputs_.size(); ++i) sizes_[i] = values[inputs_[i]];
  return keys_.find(sizes_);
}

const KnownSizes::Entry* KnownSizes::find(std::span<const int64_t> values) {
  const std::optional<size_t> place = find_place(values);
  return place ? &entries_[*place] : nullptr;
}

void KnownSizes::keep(std::span<const int64_t> values, Entry entry) {
  std::optional<size_t> place = find_place(values);
  if (!place) place = keys_.add(sizes_);
  if (!place) return;
  entries_[*place] = std::move(entry);
}

}  // namespace lathe
