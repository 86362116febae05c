// SPDX-License-Identifier: Apache-2.0
// Element types in TensorRT's words, which tools look for.
#pragma once

#include "base/dtype.h"

namespace lathe::api {

const char* inspector_word(DType type);   // "Float", "Half"
const char* format_sentence(DType type);  // of a row-major tensor: "Row major linear FP32 format"

}  // namespace lathe::api
