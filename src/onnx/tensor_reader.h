// SPDX-License-Identifier: Apache-2.0
// TensorProto and SparseTensorProto.
#pragma once

#include <vector>

#include "onnx/external_data.h"
#include "onnx/model.h"
#include "onnx/wire.h"

namespace lathe::onnx {

// What reading tensors needs besides the cursor. Faults of a tensor's content are collected, not fatal to the read.
struct TensorReader {
  ExternalData& external;
  std::shared_ptr<const void> owner;  // of the buffer that is read
  std::vector<Error>& problems;
  std::shared_ptr<AlignedCopies> copies;  // of what lies in files
  bool is_file = false;                   // what is read
  bool may_miss_external = false;         // a tensor then says why (TensorData::missing)

  void read(WireCursor cursor, TensorData& tensor);
  void read(WireCursor cursor, SparseTensorData& tensor);
};

}  // namespace lathe::onnx
