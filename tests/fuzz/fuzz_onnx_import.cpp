// SPDX-License-Identifier: Apache-2.0
#include "onnx/import.h"
#include "onnx/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = lathe::onnx::read_model(std::as_bytes(std::span(data, size)));
  if (!model) return 0;
  lathe::ir::Graph graph;
  (void)lathe::onnx::import_model(*model, graph);
  return 0;
}
