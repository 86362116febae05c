// SPDX-License-Identifier: Apache-2.0
// Turning one public layer into nodes of the graph.
#pragma once

#include "api/convert.h"
#include "ir/graph.h"

namespace lathe::api {

// Adds the nodes of one layer at the end of the graph, named after it, and can take them back.
class LayerLowering {
 public:
  LayerLowering(ir::Graph& graph, std::string layer) : graph_(graph), layer_(std::move(layer)) {}

  Result<ir::Node*> add_node(const Attributes& attributes, std::vector<ir::Value*> inputs, size_t num_outputs = 1);
  Result<ir::Value*> add(const Attributes& attributes, std::vector<ir::Value*> inputs);
  Result<ir::Value*> constant(Tensor value);
  Result<ir::Value*> ints(const Ints& values);           // i64[n]
  Result<ir::Value*> scalar(DType dtype, double value);  // rank 0
  // Refers to the application's memory, which must outlive the build.
  Result<ir::Value*> weights(const nv::Weights& weights, Dims dims);

  // Shorthands.
  Result<ir::Value*> elementwise(ElementwiseOp op, ir::Value* a, ir::Value* b);
  Result<ir::Value*> reshape(ir::Value* x, const Ints& dims, bool allow_zero = false);
  Result<ir::Value*> cast(ir::Value* x, DType dtype);  // x itself when it has this type

  ir::Graph& graph() { return graph_; }
  bool made(const ir::Value* value) const;  // by this lowering
  std::vector<ir::Node*> take_nodes() { return std::move(nodes_); }
  void undo();

 private:
  ir::Graph& graph_;
  std::string layer_;
  std::vector<ir::Node*> nodes_;
};

// A tensor over the application's memory.
Result<Tensor> tensor_of(const nv::Weights& weights, Dims dims);

}  // namespace lathe::api
