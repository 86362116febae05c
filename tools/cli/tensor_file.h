// SPDX-License-Identifier: Apache-2.0
// Tensors in files: .npy, ONNX TensorProto (.pb), pictures (.png, .jpg), and bare bytes (any other ending).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tensor.h"

namespace lathe::cli {

// What an input expects; sizes that it leaves open are -1.
struct InputSpec {
  std::string name;
  DataType type = DataType::kFLOAT;
  std::vector<int64_t> dims;
};

// Reads the file as that input. Throws Failure when its type or shape does not fit.
HostTensor read_tensor_file(const std::string& path, const InputSpec& expected);

// The tensor as that input: throws Failure when its type or shape does not fit.
HostTensor as_input(HostTensor tensor, const InputSpec& expected);

// The whole file. Throws Failure.
std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view bytes);
void check_writable(const std::string& path);  // throws Failure where write_file() is going to

HostTensor parse_npy(std::string_view bytes);
std::string npy_bytes(const HostTensor& tensor);

// One TensorProto without external data. Throws Failure.
HostTensor parse_tensor_proto(std::string_view bytes);
// The tensors of one SequenceProto, in order. Throws Failure.
std::vector<HostTensor> parse_sequence_proto(std::string_view bytes);

// The arrays of a .npz file by their names, each as the bytes of a .npy file. Throws Failure.
std::map<std::string, std::string> parse_npz(std::string_view bytes);
// `size` bytes that DEFLATE (RFC 1951) made these of. Throws Failure.
std::string inflated(std::string_view bytes, size_t size);

// A picture as an input of 2 (rows, columns), 3 or 4 dimensions, channels before or after the rows; float values are
// 0 to 1, integers 0 to 255.
HostTensor parse_image(std::string_view bytes, const InputSpec& expected);

}  // namespace lathe::cli
