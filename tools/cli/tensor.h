// SPDX-License-Identifier: Apache-2.0
// A tensor in host memory, row-major, and the names of its types.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lathe.h"

namespace lathe::cli {

using nvinfer1::DataType;

struct HostTensor {
  std::string name;
  DataType type = DataType::kFLOAT;
  std::vector<int64_t> dims;
  std::vector<std::byte> data;
  bool is_text = false;  // strings, each a row of the last dimension, zeros behind it
};

// Everything the tools need to know of an element type.
struct TypeInfo {
  DataType type;
  const char* name;   // "float32"
  int bits;           // per element; less than 8: packed, the first in the low bits
  const char* numpy;  // "<f4"; what numpy lacks is written as bytes, one for each element, and not read
  int32_t onnx;       // TensorProto.DataType
};

const TypeInfo* find_type(DataType type);
const TypeInfo* find_onnx_type(int64_t onnx);
const TypeInfo* find_numpy_type(std::string_view text);  // "<f4", little-endian
const TypeInfo& type_info(DataType type);                // throws Failure for types that are not 2 to 64 bits wide
std::string type_name(DataType type);

// Throws Failure when negative, or too large to count in bytes.
int64_t volume(const std::vector<int64_t>& dims);
size_t byte_size(DataType type, const std::vector<int64_t>& dims);

// The bits of an element of a type of 8 bits or less.
unsigned code(DataType type, const std::byte* data, int64_t index);

double element(DataType type, const std::byte* data, int64_t index);
inline double element(const HostTensor& tensor, int64_t index) {
  return element(tensor.type, tensor.data.data(), index);
}

bool is_float(DataType type);

std::vector<int64_t> to_vector(const nvinfer1::Dims& dims);
nvinfer1::Dims to_dims(const std::vector<int64_t>& dims);  // throws Failure above Dims::MAX_DIMS
std::string to_text(const std::vector<int64_t>& dims);     // "1x3x224x224", "scalar"; "?" for unknown sizes

// Float values in [0, 1), booleans from the seed, other integers 0 (they may be indices), like floats of few bits.
HostTensor make_input(std::string name, DataType type, std::vector<int64_t> dims, uint64_t seed);

}  // namespace lathe::cli
