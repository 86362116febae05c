// SPDX-License-Identifier: Apache-2.0
// Engines are made here, in this library.
#include "api/runtime/cuda_engine.h"
#include "api/runtime/runtime.h"

namespace lathe::api {

Result<nv::ICudaEngine*> load_engine(Runtime& runtime, std::span<const std::byte> bytes,
                                     std::shared_ptr<const void> owner) {
  return CudaEngine::load(runtime.shared_core(), bytes, std::move(owner));
}

}  // namespace lathe::api
