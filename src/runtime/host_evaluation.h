// SPDX-License-Identifier: Apache-2.0
// What the host does for steps of a context: plain evaluations, copies, and sizes that it makes of tensors' contents.
#pragma once

#include <functional>

#include "runtime/step_operands.h"
#include "runtime/tensor_storage.h"

namespace lathe {

// Sees a result of a step, its content row-major in host memory. An error ends the run.
using Observer = std::function<Result<>(const plan::TensorDesc& tensor, const Tensor& content)>;

// Works on copies of what lies in a device's memory, and waits for each; on a CPU, in place. Queues are within a turn.
// One thread at a time, as the context that owns it; all that it is made of outlives it.
class HostEvaluation {
 public:
  HostEvaluation(const Engine& engine, ShapeBinding& shapes, TensorStorage& storage)
      : engine_(engine), plan_(engine.plan()), shapes_(shapes), storage_(storage) {}

  // Runs a step that has no kernel: the plain evaluation of an op on dense tensors, or the identity on any.
  Result<> run(size_t step, StepOperands& operands, Queue& queue);
  // Reads the sizes that the step is the first to need from tensors of the device's.
  Result<> read_counts(const plan::Step& step, Queue& queue);
  // Reads those that a plugin has found out, and waits for them.
  Result<> read_written_sizes(const plan::Step& step, Queue& queue);
  // Sizes of a step's results that its op's shape rule makes of the contents of small inputs: a shape, pads, scales.
  Result<> find_sizes(size_t step, Queue& queue);
  // One element of 8 bytes or one; waits for the device unless the host knows it.
  Result<int64_t> read_number(plan::TensorId id, Queue& queue) const;
  Result<bool> read_truth(plan::TensorId id, Queue& queue) const;
  Result<> show_results(const plan::Step& step, const Observer& observer, Queue& queue);

 private:
  template <class T>
  Result<T> read_scalar(plan::TensorId id, Queue& queue) const;
  Result<TensorArg> resolve_checked(plan::TensorId id) const;
  Result<Tensor> host_copy(const TensorArg& arg, Queue& queue) const;
  Result<> copy(size_t step, StepOperands& operands, Queue& queue);
  Result<> evaluate(size_t step, StepOperands& operands, Queue& queue);

  const Engine& engine_;
  const plan::Plan& plan_;
  ShapeBinding& shapes_;
  TensorStorage& storage_;
};

}  // namespace lathe
