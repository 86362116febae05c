// SPDX-License-Identifier: Apache-2.0
// Digests of weights that a build lets go of, some at a time on all its threads.
#pragma once

#include <vector>

#include "base/hash.h"
#include "ops/tensor.h"

namespace lathe {

// From now on all digests are found with the vector instructions that there are.
void use_fast_digests();

class WeightsDigests {
 public:
  explicit WeightsDigests(int threads = 1) : threads_(threads) {}
  // Keeps the weights until their digest is found: where those that are kept are large, now, and else by find().
  // `digest` stays where it is until then.
  void add(const Tensor& weights, Digest& digest);
  void find();

 private:
  struct Wanted {
    Tensor weights;
    Digest* digest;
  };
  int threads_;
  size_t bytes_ = 0;  // of weights that are kept
  std::vector<Wanted> wanted_;
};

}  // namespace lathe
