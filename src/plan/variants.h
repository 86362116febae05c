// SPDX-License-Identifier: Apache-2.0
// One plan of several: the same network for several targets, whose weights are there once where they are equal. A
// variant is a plan of its own; a runtime takes the one that it runs. docs/plan_format.md.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/header.h"
#include "plan/shared_weights.h"

namespace lathe::plan {

inline constexpr std::string_view kVariants = "variants";
inline constexpr size_t kMaxVariants = 16;

// Of the header's list; one of a plan without variants.
std::vector<std::string> targets_of(const PlanPrefix& header);

// A plan of these, which must be of one version, for different targets, and of one network as far as inputs and outputs
// tell. Plans that are merged already are taken apart first. Signatures are left out.
Result<std::vector<std::byte>> merge_plans(std::span<const std::span<const std::byte>> plans,
                                           Sharing sharing = Sharing::derived);

// The plan for one of targets_of(), byte for byte as it was merged, signature and foreign prefix aside. All of `plan`
// is compared with its checksums first. So many threads do that, and derive weights that it does not hold.
Result<std::vector<std::byte>> take_variant(std::span<const std::byte> plan, size_t index, int threads = 1);
// The same into so many bytes of memory, which are zeros.
using GetMemory = std::function<Result<std::span<std::byte>>(size_t bytes)>;
Result<> take_variant(std::span<const std::byte> plan, size_t index, int threads, const GetMemory& memory);

// Which of the weights of that variant, by their place in them, the file derives of others.
Result<std::vector<WeightsWindow>> derived_weights_of(std::span<const std::byte> plan, size_t index);

}  // namespace lathe::plan
