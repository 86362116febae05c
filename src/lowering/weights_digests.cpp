// SPDX-License-Identifier: Apache-2.0
#include "lowering/weights_digests.h"

#include <sodium/core.h>

#include "base/for_each_in_threads.h"

namespace lathe {

void use_fast_digests() {
  static const int initialized = sodium_init();  // without it they are found more slowly
  (void)initialized;
}

void WeightsDigests::add(const Tensor& weights, Digest& digest) {
  constexpr size_t kMostBytes = size_t{512} << 20;
  wanted_.push_back({weights, &digest});
  bytes_ += weights.bytes();
  if (bytes_ >= kMostBytes || threads_ == 1) find();
}

void WeightsDigests::find() {
  for_each_in_threads(wanted_.size(), threads_,
                      [&](size_t i, size_t) { *wanted_[i].digest = digest_of(wanted_[i].weights.raw()); });
  wanted_.clear();
  bytes_ = 0;
}

}  // namespace lathe
