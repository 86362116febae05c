// SPDX-License-Identifier: Apache-2.0
// INT64 as older releases took it: ImportOptions::int64_as_int32.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace lathe::onnx {

// Of one import: what becomes of INT64, and the warning that says so.
class Int64Weights {
 public:
  explicit Int64Weights(bool narrows) : narrows_(narrows) {}
  // A weight of the model, with values clamped to the limits of INT32 where INT64 is narrowed. Nodes go on to see its
  // declared type.
  Result<Tensor> take(Result<Tensor> weight, std::string_view name);
  // An input of the engine, of INT32 where the model declares INT64; gives it as nodes see it.
  Result<ir::Value*> add_input(ir::Graph& graph, const std::string& name, DType dtype, Shape shape);
  // An output of the engine: of INT32, clamped, where the model's is INT64.
  Result<> add_output(ir::Graph& graph, const std::string& name, ir::Value* value);

  // The one warning of an import; "" where nothing was narrowed.
  std::string warning() const;

 private:
  const bool narrows_;
  std::vector<std::string> weights_, ports_, clamped_;  // names; of what was clamped with how many values
  size_t num_clamped_ = 0;                              // values
};

}  // namespace lathe::onnx
