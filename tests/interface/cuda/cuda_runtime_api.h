// SPDX-License-Identifier: Apache-2.0
// Stands for the header of CUDA's runtime where it is installed: what its declarations have in common with ours.
#pragma once

#define CUDART_VERSION 12000
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
