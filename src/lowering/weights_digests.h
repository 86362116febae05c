// SPDX-License-Identifier: Apache-2.0
// Digests of weights, which threads of their own find while a build goes on.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/hash.h"

namespace lathe {

// From now on all digests are found with the vector instructions that there are.
void use_fast_digests();

class WeightsDigests {
 public:
  // On so many threads, the calling one included; others are there once they have something to do.
  explicit WeightsDigests(int threads = 1) : most_threads_(threads) {}
  ~WeightsDigests();
  int most_threads() const { return most_threads_; }
  // `owner` keeps the weights until their digest is found; where much is kept so, the caller finds some first. Null =
  // they stay, as `digest` stays where it is, until find() has returned.
  void add(std::span<const std::byte> weights, std::shared_ptr<const void> owner, Digest& digest);
  // Returns when all are found.
  void find();

 private:
  struct Wanted {
    std::span<const std::byte> weights;
    std::shared_ptr<const void> owner;
    size_t kept;  // bytes, for its digest alone
    Digest* digest;
  };
  void start();
  void work();                                        // of one of the threads
  bool find_one(std::unique_lock<std::mutex>& lock);  // false = all are taken

  const int most_threads_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Wanted> wanted_;
  size_t next_ = 0;           // the first that nobody has taken
  size_t waiting_bytes_ = 0;  // of those
  size_t kept_bytes_ = 0;     // that owners are kept for
  size_t being_found_ = 0;
  bool ends_ = false;
};

}  // namespace lathe
