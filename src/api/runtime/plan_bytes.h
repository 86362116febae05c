// SPDX-License-Identifier: Apache-2.0
// Plans in memory of the library's own, where engines use their weights.
#pragma once

#include <memory>
#include <span>

#include "NvInferRuntime.h"
#include "base/result.h"

namespace lathe::api {

namespace nv = nvinfer1;

struct PlanBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

// Zeros, in pages that take no memory until they are written: a stream, or a plan, may promise more than it gives.
Result<std::shared_ptr<std::byte>> reserve_plan(size_t size);
Result<PlanBytes> copy_plan(std::span<const std::byte> bytes);

// Reads one plan, from where the reader stands, and JSON in front of it. Asks for no byte behind the plan, for readers
// fail there, or hold something else.
Result<PlanBytes> read_plan(nv::IStreamReaderV2& reader);

}  // namespace lathe::api
