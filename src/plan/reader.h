// SPDX-License-Identifier: Apache-2.0
// Reads plans from memory that strangers filled: nothing is used before it has been checked.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "plan/header.h"
#include "plan/plan.h"
#include "plan/sections.h"

namespace lathe::plan {

// Weights of a plan whose file does not hold them.
struct Weights {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // as that of read_plan()
};

struct ReadOptions {
  bool verify_weights = true;  // by checksum; false: the caller calls check_weights later, or trusts the storage
  bool check_host = true;      // false: also read plans for other systems, to look at them
  Version version = library_version();  // what the plan must have been written by
  std::optional<Weights> weights;       // for plans that do not hold them
  bool without_weights = false;         // such plans are read without them, to look at them
  bool borrows_weights = false;         // not copied: without an owner they are there as long as the caller has them
  int threads = 0;                      // that check weights; 0 = as many as this process may use
};

// Whether this library reads such plans: its version, features and system. read_plan() asks first of all, and so does
// who has to make something costly or uncertain before that, such as a device.
Result<> check_usable(const PlanHeader& header, const ReadOptions& options);

struct LoadedPlan {
  Plan plan;
  std::shared_ptr<const void> owner;  // keeps Plan::weights and the images in Plan::codes alive
};

// `owner` keeps `bytes` alive; weights and code are then used in place when they are 64-byte aligned. Without an owner,
// or without that alignment, they are copied.
Result<LoadedPlan> read_plan(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                             const ReadOptions& options = {});

// Compares the digest of the weights with the header's; for plans that were read with verify_weights off. Weights that
// are not in the file are not looked at.
Result<> check_weights(std::span<const std::byte> bytes);

}  // namespace lathe::plan
