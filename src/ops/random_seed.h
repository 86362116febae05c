// SPDX-License-Identifier: Apache-2.0
// Where random numbers of ops without a seed come from.
#pragma once

#include <cstdint>
#include <optional>

namespace lathe {

// For the whole process. With a seed, fresh_seed gives the same number each time for the same stream and number of a
// run, so that two evaluations of a network can be compared; without (as the process begins) it never gives a number
// again. Sequences begin anew. Returns what was set before.
std::optional<uint64_t> set_random_seed(std::optional<uint64_t> seed);

// Runs that follow each other: the n-th one since the seed was set draws the same numbers in each sequence. One thread
// at a time.
class RandomSequence {
 public:
  // The next run, which lasts as long as this and is the thread's. Outside of any, fresh_seed draws as first runs do.
  class Run {
   public:
    explicit Run(RandomSequence& sequence);
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    uint64_t around_;  // the number of the run that this one is within
  };

 private:
  uint64_t seeds_ = 0;  // how many had been set when runs were counted last
  uint64_t runs_ = 0;
};

}  // namespace lathe
