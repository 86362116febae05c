// SPDX-License-Identifier: Apache-2.0
// Turning one public layer into nodes of the graph.
#pragma once

#include "api/convert.h"
#include "ir/builder.h"

namespace lathe::api {

// Adds the nodes of one layer at the end of the graph, named after it, and can take them back.
class LayerLowering : public ir::GraphBuilder {
 public:
  LayerLowering(ir::Graph& graph, const std::string& layer) : GraphBuilder(graph, {layer, {layer}, {}}) {}

  // Refers to memory that `owner` keeps, or to the application's, which must outlive the build.
  ir::Value* weights(const nv::Weights& weights, Dims dims, std::shared_ptr<const void> owner = nullptr);

  bool made(const ir::Value* value) const;  // by this lowering
  // What another builder has added for the same layer.
  void adopt(const ir::GraphBuilder& other) { added_.insert(added_.end(), other.added().begin(), other.added().end()); }
  std::vector<ir::Node*> take_nodes() { return std::move(added_); }
  void undo();
};

// What layers may count elements in: kINT32 or kINT64.
Result<DType> to_index_type(nv::DataType type);

// What no layer takes, whichever it is and whatever else is set: enumerators that do not exist, ranks that Dims cannot
// hold, weights without memory. Other types have no such values. -1 dims are those that are not set.
Result<> check_dims(const nv::Dims& dims);
Result<> check_weights(const nv::Weights& weights);
template <class T>
Result<> check_argument(const T& value) {
  if constexpr (std::is_same_v<T, nv::Dims>) {
    return check_dims(value);
  } else if constexpr (std::is_same_v<T, nv::Weights>) {
    return check_weights(value);
  } else if constexpr (std::is_same_v<T, nv::DataType>) {
    LATHE_TRY(to_dtype(value));
  } else if constexpr (std::is_enum_v<T>) {
    if (static_cast<int>(value) < 0 || static_cast<int>(value) >= nv::EnumMax<T>())
      return fail(ErrorCode::invalid_argument, "{} is not a value of its enumeration; 0 to {} are",
                  static_cast<int>(value), nv::EnumMax<T>() - 1);
  }
  return {};
}

}  // namespace lathe::api
