// SPDX-License-Identifier: Apache-2.0
#include "onnx/checker.h"
#include "onnx/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto model = lathe::onnx::read_model(bytes)) (void)lathe::onnx::check_model(*model);
  (void)lathe::onnx::read_tensor(bytes);
  return 0;
}
