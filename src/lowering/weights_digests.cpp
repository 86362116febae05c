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
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WeightsDigests::add(std::span<const std::byte> weights, std::shared_ptr<const void> owner, Digest& digest) {
  constexpr size_t kMostBytes = size_t{512} << 20;
  std::unique_lock lock(mutex_);
  while (bytes_ > kMostBytes && find_one(lock)) {  // before, so that a thread of its own finds what is largest
  }
  const size_t kept = owner ? weights.size() : 0;
  waiting_.push_back({weights, std::move(owner), kept, &digest});
  bytes_ += kept;
  if (threads_.empty()) start();
  changed_.notify_one();
  while (threads_.empty() && find_one(lock)) {
  }
}

void WeightsDigests::find() {
  std::unique_lock lock(mutex_);
  while (find_one(lock)) {
  }
  changed_.wait(lock, [&] { return being_found_ == 0; });
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
    if (!find_one(lock)) changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
}

bool WeightsDigests::find_one(std::unique_lock<std::mutex>& lock) {
  if (waiting_.empty()) return false;
  Wanted wanted = std::move(waiting_.front());
  waiting_.pop_front();
  ++being_found_;
  lock.unlock();
  *wanted.digest = digest_of(wanted.weights);
  wanted.owner.reset();  // which may be the last, and large
  lock.lock();
  bytes_ -= wanted.kept;
  if (--being_found_ == 0) changed_.notify_all();
  return true;
}

}  // namespace lathe
