// SPDX-License-Identifier: Apache-2.0
// The optional libraries on one GPU: opened, and started on it, when first asked for; kept while somebody uses them.
#pragma once

#include "device/cuda/cublaslt.h"
#include "device/cuda/cudnn.h"
#include "device/cuda/library_call.h"
#include "device/cuda/shared_table.h"
#include "device/launch.h"

namespace lathe::cuda {

// Thread-safe.
class Libraries {
 public:
  explicit Libraries(std::shared_ptr<PrimaryContext> context) : context_(std::move(context)) {}

  Result<std::shared_ptr<const CublasLtHandle>> cublaslt();
  Result<std::shared_ptr<const CudnnHandle>> cudnn();
  // What a launch with a library calls. The launch's arguments are counted here, their values are the call's to check.
  Result<std::unique_ptr<LibraryCall>> make_call(const Launch& launch);

 private:
  std::shared_ptr<PrimaryContext> context_;
  SharedTable<int, const CublasLtHandle> cublaslt_;
  SharedTable<int, const CudnnHandle> cudnn_;
};

}  // namespace lathe::cuda
