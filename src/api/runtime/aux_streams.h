// SPDX-License-Identifier: Apache-2.0
// The auxiliary streams that an application gives to a context.
#pragma once

#include "NvInferRuntime.h"
#include "runtime/context.h"

namespace lathe::api {

// Refuses the default stream and one that is there twice: what runs beside each other would wait for itself.
Result<> set_aux_streams(Context& context, const cudaStream_t* streams, int32_t count);

}  // namespace lathe::api
