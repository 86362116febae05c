// SPDX-License-Identifier: Apache-2.0
// Limits of a plan: validate() enforces them when writing and when reading.
#pragma once

#include <cstddef>

namespace lathe::plan {

inline constexpr size_t kMaxRank = 8;
inline constexpr size_t kMaxEntries = size_t{1} << 20;  // of each list
inline constexpr size_t kMaxOperands = 4096;            // of a step; as many parameters
inline constexpr size_t kMaxString = size_t{16} << 20;
inline constexpr size_t kMaxTarget = 183;
inline constexpr size_t kMaxSectionName = 23;
inline constexpr size_t kMaxSectionAlignment = size_t{1} << 16;
inline constexpr size_t kMaxBodies = 2;      // of a block
inline constexpr size_t kMaxBlockDepth = 8;  // blocks within blocks
inline constexpr size_t kMaxStreams = 16;    // auxiliary ones
inline constexpr size_t kMaxImages = 64;     // of a code module
inline constexpr size_t kMaxMetadata = size_t{1} << 30;
inline constexpr size_t kMaxDecoded = size_t{256} << 20;  // in memory, and 16 bytes per node of each used expression
inline constexpr size_t kConstantAlignment = 64;
inline constexpr size_t kMaxDeflatedCode = size_t{256} << 20;  // inflated, of the images that a device takes together
inline constexpr size_t kCodeAlignment = 64;
inline constexpr size_t kWeightsAlignment = 4096;
inline constexpr size_t kHostCodeAlignment = 64;
inline constexpr size_t kMaxHostCode = size_t{64} << 20;  // of one section, as it is loaded

}  // namespace lathe::plan
