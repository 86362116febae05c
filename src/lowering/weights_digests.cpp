// SPDX-License-Identifier: Apache-2.0
#include "lowering/weights_digests.h"

#include <sodium/core.h>

#include <exception>
#include <utility>

namespace lathe {

void use_fast_digests() {
  static const int initialized = sodium_init();  // without it they are found more slowly
  (void)initialized;
}

WeightsDigests::~WeightsDigests() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WeightsDigests::add(std::span<const std::byte> weights, std::shared_ptr<const void> owner, Digest& digest) {
  constexpr size_t kMostKept = size_t{512} << 20, kWorthThreads = size_t{1} << 20;
  std::unique_lock lock(mutex_);
  while (kept_bytes_ > kMostKept && find_one(lock)) {  // first, so that the new one is left to another thread
  }
  const size_t kept = owner ? weights.size() : 0;
  wanted_.push_back({weights, std::move(owner), kept, &digest});
  kept_bytes_ += kept;
  waiting_bytes_ += weights.size();
  if (threads_.empty() && waiting_bytes_ >= kWorthThreads) start();
  changed_.notify_one();
}

void WeightsDigests::find() {
  std::unique_lock lock(mutex_);
  while (find_one(lock)) {
  }
  changed_.wait(lock, [&] { return being_found_ == 0; });
  wanted_.clear();
  next_ = 0;
}

void WeightsDigests::start() {
  try {
    for (int i = 1; i < most_threads_; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::exception&) {  // no thread, or no memory, for one more
  }
}

void WeightsDigests::work() {
  std::unique_lock lock(mutex_);
  while (!ends_)
    if (!find_one(lock)) changed_.wait(lock, [&] { return ends_ || next_ < wanted_.size(); });
}

bool WeightsDigests::find_one(std::unique_lock<std::mutex>& lock) {
  if (next_ == wanted_.size()) return false;
  Wanted wanted = std::move(wanted_[next_++]);
  waiting_bytes_ -= wanted.weights.size();
  ++being_found_;
  lock.unlock();
  *wanted.digest = digest_of(wanted.weights);
  wanted.owner.reset();  // which may be the last, and large
  lock.lock();
  kept_bytes_ -= wanted.kept;
  if (--being_found_ == 0) changed_.notify_all();
  return true;
}

}  // namespace lathe
