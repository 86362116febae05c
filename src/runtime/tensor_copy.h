// SPDX-License-Identifier: Apache-2.0
// Copies between tensors, whatever their strides.
#pragma once

#include "device/device.h"
#include "device/tensor_arg.h"

namespace lathe {

// The elements from the lowest to the highest that a tensor's strides reach, as a line, and which of them is the
// tensor's first: strides below 0 go back from it.
struct Line {
  TensorArg elements;
  int64_t first = 0;
};
Line line_of(const TensorArg& tensor);

// Copies the elements of one tensor to the places of another of the same type and size; both lie in the device's memory
// and do not overlap. What lies between the elements of the result stays. The device does it by itself where few
// copies of rows are enough, else the host, which waits.
Result<> copy_tensor(const TensorArg& from, const TensorArg& to, Device& device, Queue& queue);

// Whether the host need not wait for that copy, so that it can be captured.
bool device_copies(const TensorArg& from, const TensorArg& to);

}  // namespace lathe
