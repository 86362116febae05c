// SPDX-License-Identifier: Apache-2.0
// The version of generation 10, which LATHE_TENSORRT_MAJOR=10 selects. Include NvInferVersion.h instead.
#ifndef NVINFER_VERSION_10_16_H
#define NVINFER_VERSION_10_16_H

#define NV_TENSORRT_MAJOR 10
#define NV_TENSORRT_MINOR 16
#define NV_TENSORRT_PATCH 0
#define NV_TENSORRT_BUILD 72

#endif  // NVINFER_VERSION_10_16_H
