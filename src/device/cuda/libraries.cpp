// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/libraries.h"

#include "device/cuda/convolution_call.h"
#include "device/cuda/matmul_call.h"

namespace lathe::cuda {

Result<std::shared_ptr<const CublasLtHandle>> Libraries::cublaslt() {
  return cublaslt_.get(0, [&]() -> Result<std::shared_ptr<const CublasLtHandle>> {
    LATHE_ASSIGN(const CublasLt* library, cuda::cublaslt());
    return CublasLtHandle::create(context_, *library);
  });
}

Result<std::shared_ptr<const CudnnHandle>> Libraries::cudnn() {
  return cudnn_.get(0, [&]() -> Result<std::shared_ptr<const CudnnHandle>> {
    LATHE_ASSIGN(const Cudnn* library, cuda::cudnn());
    return CudnnHandle::create(context_, *library);
  });
}

Result<std::unique_ptr<LibraryCall>> Libraries::make_call(const Launch& launch) {
  const auto needs = [&](size_t count) -> Result<> {
    if (launch.args.size() == count) return {};
    return fail(ErrorCode::launch_refused, "{}.{} takes {} arguments, and the plan gives {}", launch.library,
                launch.entry, count, launch.args.size());
  };
  if (launch.library == kCublasLtName && launch.entry == kMatmulEntry) {
    LATHE_TRY(needs(matmul::kNumArgs));
    LATHE_ASSIGN(std::shared_ptr<const CublasLtHandle> handle, cublaslt());
    return std::make_unique<MatmulCall>(std::move(handle));
  }
  if (launch.library == kCudnnName && launch.entry == kConvolutionEntry) {
    LATHE_TRY(needs(convolution::kNumArgs));
    LATHE_ASSIGN(std::shared_ptr<const CudnnHandle> handle, cudnn());
    return std::make_unique<ConvolutionCall>(std::move(handle));
  }
  return fail(ErrorCode::launch_refused, "the plan calls {}.{}, which this version of Lathe does not know",
              launch.library, launch.entry);
}

}  // namespace lathe::cuda
