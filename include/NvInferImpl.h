// SPDX-License-Identifier: Apache-2.0
// Implementation tables: the library derives from them, the inline functions of the public classes forward to them.
// Not for direct use.
#ifndef NV_INFER_IMPL_H
#define NV_INFER_IMPL_H

#include "nvinfer/impl_builder.h"
#include "nvinfer/impl_layers.h"
#include "nvinfer/impl_runtime.h"

#endif  // NV_INFER_IMPL_H
