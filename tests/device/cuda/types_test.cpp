// SPDX-License-Identifier: Apache-2.0
// Our declarations of the driver's types against NVIDIA's, where its header is installed.
#include "device/cuda/cuda_types.h"

#include <gtest/gtest.h>

#ifndef LATHE_HAS_CUDA_HEADER
TEST(CudaTypes, AreThoseOfTheHeader) { GTEST_SKIP() << "cuda.h is not installed"; }
#else
#include <cuda.h>

namespace ours = lathe::cuda;

#define SAME_VALUE(name) static_assert(static_cast<int>(ours::name) == static_cast<int>(::name))
#define LATHE_DRIVER_RESULT(name, number, code, fate, remedy) SAME_VALUE(name);
#include "device/cuda/driver_results.def"
#undef LATHE_DRIVER_RESULT
SAME_VALUE(CU_TENSOR_MAP_DATA_TYPE_UINT8);
SAME_VALUE(CU_TENSOR_MAP_DATA_TYPE_UINT16);
SAME_VALUE(CU_TENSOR_MAP_DATA_TYPE_UINT32);
SAME_VALUE(CU_TENSOR_MAP_DATA_TYPE_UINT64);
SAME_VALUE(CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
SAME_VALUE(CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_VALUE(CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME_VALUE(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_VALUE(CU_MEMORYTYPE_HOST);
SAME_VALUE(CU_MEMORYTYPE_DEVICE);
SAME_VALUE(CU_MEMORYTYPE_UNIFIED);
SAME_VALUE(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_VALUE(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME_VALUE(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME_VALUE(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
SAME_VALUE(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME_VALUE(CU_STREAM_CAPTURE_MODE_RELAXED);
SAME_VALUE(CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME_VALUE(CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME_VALUE(CU_STREAM_NON_BLOCKING);
SAME_VALUE(CU_EVENT_DISABLE_TIMING);
SAME_VALUE(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
SAME_VALUE(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME_VALUE(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);

#define SAME_PLACE(type, member) static_assert(offsetof(ours::type, member) == offsetof(::type, member))
static_assert(sizeof(ours::CUlaunchConfig) == sizeof(::CUlaunchConfig));
SAME_PLACE(CUlaunchConfig, gridDimX);
SAME_PLACE(CUlaunchConfig, blockDimX);
SAME_PLACE(CUlaunchConfig, sharedMemBytes);
SAME_PLACE(CUlaunchConfig, hStream);
SAME_PLACE(CUlaunchConfig, attrs);
SAME_PLACE(CUlaunchConfig, numAttrs);
static_assert(sizeof(ours::CUDA_MEMCPY2D) == sizeof(::CUDA_MEMCPY2D));
SAME_PLACE(CUDA_MEMCPY2D, srcMemoryType);
SAME_PLACE(CUDA_MEMCPY2D, srcDevice);
SAME_PLACE(CUDA_MEMCPY2D, srcPitch);
SAME_PLACE(CUDA_MEMCPY2D, dstMemoryType);
SAME_PLACE(CUDA_MEMCPY2D, dstDevice);
SAME_PLACE(CUDA_MEMCPY2D, dstPitch);
SAME_PLACE(CUDA_MEMCPY2D, WidthInBytes);
SAME_PLACE(CUDA_MEMCPY2D, Height);
static_assert(sizeof(ours::CUlaunchAttribute) == sizeof(::CUlaunchAttribute));
SAME_PLACE(CUlaunchAttribute, id);
SAME_PLACE(CUlaunchAttribute, value);
static_assert(offsetof(ours::CUlaunchAttributeValue, clusterDim) == offsetof(::CUlaunchAttributeValue, clusterDim));
static_assert(sizeof(ours::CUgraphExecUpdateResultInfo) == sizeof(::CUgraphExecUpdateResultInfo));
SAME_PLACE(CUgraphExecUpdateResultInfo, result);
SAME_PLACE(CUgraphExecUpdateResultInfo, errorNode);
static_assert(sizeof(ours::CUtensorMap) == sizeof(::CUtensorMap));
static_assert(alignof(ours::CUtensorMap) >= alignof(::CUtensorMap));
static_assert(sizeof(ours::CUdeviceptr) == sizeof(::CUdeviceptr));

TEST(CudaTypes, AreThoseOfTheHeader) { SUCCEED() << "checked while compiling"; }
#endif
