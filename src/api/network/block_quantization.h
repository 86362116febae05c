// SPDX-License-Identifier: Apache-2.0
// What layers that find scales while running are told of their blocks.
#pragma once

#include "api/convert.h"
#include "compose/dynamic_quantize.h"

namespace lathe::api {

namespace nv = nvinfer1;

// Of x, in blocks of this shape, -1 meaning the whole extent; fails where there are no such levels, scales or blocks.
Result<DynamicQuantization> block_quantization(const ir::Value& x, const nv::Dims& shape, nv::DataType to,
                                               nv::DataType scale);

}  // namespace lathe::api
