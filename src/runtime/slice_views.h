// SPDX-License-Identifier: Apache-2.0
// Slices that a loop's body reads or writes where they are, without a copy.
#pragma once

#include <vector>

#include "runtime/tensor_storage.h"

namespace lathe {

// The buffer of a param or result lies, for a round, where the slice is: where that is as dense and aligned as a
// buffer, nothing else has to do with the buffer, and the body does not write to what it scans. One thread at a time,
// as the context that owns it; all that it is made of outlives it.
class SliceViews {
 public:
  SliceViews(const Engine& engine, size_t loop, ContextMemory& memory, const TensorStorage& storage);

  // Whether the body finds the slice that scanned input `i` has at that index; otherwise it is to be copied.
  Result<bool> view_scanned(size_t i, int64_t round);
  // Whether it writes to that of stacked output `i`, whose length is known.
  Result<bool> view_stacked(size_t i, int64_t round);
  void restore();

 private:
  struct View {
    plan::TensorId whole, part;
    plan::Slice slice;
    bool possible;
  };
  Result<bool> view(const View& view, int64_t round);

  const plan::Plan& plan_;
  ContextMemory& memory_;
  const TensorStorage& storage_;
  std::vector<View> scanned_, stacked_;
};

}  // namespace lathe
