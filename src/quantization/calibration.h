// SPDX-License-Identifier: Apache-2.0
// Runs a float network on the host over batches of the application's, and collects what its tensors hold.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lowering/build.h"
#include "quantization/histogram.h"
#include "runtime/context.h"

namespace lathe {

// One at a time; made for one network and one size of batches.
class Calibration {
 public:
  struct Input {
    std::string name;
    DType dtype = DType::f32;
    Dims dims;  // -1 = each batch says
  };

  // Of `tensors`, values of `network` by their names. The opt sizes of `sizes` are those of each batch; what it gives
  // the values of is no part of a batch. Null leaves open what the network does. `threads` as DeviceFamily::open() has
  // it.
  static Result<std::unique_ptr<Calibration>> create(const ir::Graph& network, const ProfileShapes* sizes,
                                                     std::span<const std::string> tensors, int threads);

  // What a batch is made of, in the order of the network's inputs.
  const std::vector<Input>& inputs() const { return inputs_; }
  // Runs one batch: a tensor for each of inputs(), of its type and dims.
  Result<> add(std::span<const Tensor> batch);

  const std::map<std::string, Histogram>& histograms() const { return histograms_; }

 private:
  Result<> set_inputs(const ir::Graph& network, const ProfileShapes* sizes);
  Result<> load(ir::Graph network, const ProfileShapes* sizes, int threads);
  Result<> take_outputs();

  std::vector<Input> inputs_;
  std::map<std::string, Tensor> values_;  // of inputs that are no part of a batch
  std::map<std::string, Histogram> histograms_;
  std::map<std::string, Tensor> outputs_;  // tensors that are computed
  std::unique_ptr<Context> context_;       // null = only inputs are asked for
};

}  // namespace lathe
