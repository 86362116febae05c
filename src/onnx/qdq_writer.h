// SPDX-License-Identifier: Apache-2.0
// Puts pairs of QuantizeLinear and DequantizeLinear into a model. All names that it has stay.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "onnx/writer.h"

namespace lathe::onnx {

class QdqWriter {
 public:
  explicit QdqWriter(const Model& model);

  // Nodes of the main graph read the levels of the tensor from now on, but for those whose indices are `floats`.
  // `scale` has the tensor's type, `zero_point` that of the levels; both hold one number.
  Result<> round(std::string_view tensor, const Tensor& scale, const Tensor& zero_point,
                 const std::set<size_t>& floats);

  // The node's input is a constant: these levels from now on. `scale` holds one number, or one for each position of
  // `axis`; so does the zero point, which is `zero` everywhere. Nodes that read one tensor share its levels where their
  // scales are the same.
  Result<> replace(size_t node, size_t input, const Tensor& levels, const Tensor& scale, double zero,
                   std::optional<int64_t> axis);

  // Done.
  ModelEdits take();

 private:
  std::string fresh(std::string name);
  std::string add_constant(std::string name, Tensor content);
  NewNode dequantize(const std::string& tensor, std::string levels, std::string scale, std::string zero_point);

  const Model& model_;
  ModelEdits edits_;
  std::set<std::string, std::less<>> names_;  // that are taken
  struct Replaced {
    std::string tensor;
    std::optional<int64_t> axis;
    Tensor scale;
    std::string floats;  // what is read instead
  };
  std::vector<Replaced> replaced_;
};

}  // namespace lathe::onnx
