// SPDX-License-Identifier: Apache-2.0
// Weights of variants that are other weights of the file in another order: the file says in which, and they are put in
// it when a variant is taken out. docs/plan_format.md.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ops/packing.h"

namespace lathe::plan {

inline constexpr std::string_view kDerivedWeights = "derived_weights";

// Bytes of weights that variants share.
struct WeightsWindow {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
// Whether two have a byte in common.
bool overlap(std::vector<WeightsWindow> pieces);

// Its place is behind the weights that the file holds, as if they went on: at the next multiple of 64 behind the piece
// before.
struct DerivedPiece {
  WeightsWindow place;
  WeightsWindow source;  // of the weights that the file holds
  size_t element = 4;    // bytes
  Packing packing;
};
bool is_element(size_t bytes);  // whether elements have so many
// What a variant derives of each byte that the file holds is at most so much.
inline constexpr uint64_t kMostDerived = 2;

// Sets the places, behind so many bytes; false where they have none.
bool place_derived(std::span<DerivedPiece> pieces, uint64_t weights);
std::vector<std::byte> encode_derived(std::span<const DerivedPiece> pieces);
// Checked, so that they can be derived of so many bytes of weights, and placed.
Result<std::vector<DerivedPiece>> decode_derived(std::span<const std::byte> section, uint64_t weights);

struct Derivative {
  const DerivedPiece* piece = nullptr;
  std::byte* to = nullptr;  // zeros
};
void derive(std::span<const Derivative> derivatives, std::span<const std::byte> weights, int threads);

}  // namespace lathe::plan
