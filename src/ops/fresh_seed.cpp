// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <mutex>
#include <random>
#include <utility>

#include "ops/random_seed.h"
#include "ops/rules.h"

namespace lathe {
namespace {

std::mutex seed_mutex;
std::optional<uint64_t> process_seed;
std::atomic<uint64_t> seeds_set = 0;
thread_local uint64_t this_run = 0;

// The finaliser of splitmix64: neighbours become unrelated numbers, and different ones stay different.
uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

uint64_t next_number() {
  static const uint64_t begin = [] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  static std::atomic<uint64_t> count = 0;
  return begin + count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

std::optional<uint64_t> set_random_seed(std::optional<uint64_t> seed) {
  const std::lock_guard lock(seed_mutex);
  ++seeds_set;
  return std::exchange(process_seed, seed);
}

RandomSequence::Run::Run(RandomSequence& sequence) : around_(this_run) {
  if (const uint64_t seeds = seeds_set.load(std::memory_order_relaxed); seeds != sequence.seeds_) {
    sequence.seeds_ = seeds;
    sequence.runs_ = 0;
  }
  this_run = sequence.runs_++;
}

RandomSequence::Run::~Run() { this_run = around_; }

Result<> infer_fresh_seed(InferContext& context) {
  context.set(0, DType::i64, {1});
  return {};
}

Result<> eval_fresh_seed(EvalContext& context) {
  const auto stream = static_cast<uint64_t>(context.attrs<FreshSeedAttrs>().stream);
  std::optional<uint64_t> seed;
  {
    const std::lock_guard lock(seed_mutex);
    seed = process_seed;
  }
  const uint64_t number = mixed(seed ? mixed(*seed) + stream + mixed(this_run) : next_number());
  context.output(0).mutable_as<int64_t>()[0] = static_cast<int64_t>(number);
  return {};
}

}  // namespace lathe
