// SPDX-License-Identifier: Apache-2.0
// One candidate, made runnable on random data: for timing and for checking against the plain evaluation.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>

#include "device/device.h"
#include "tuning/checked_columns.h"
#include "tuning/expected.h"
#include "tuning/gathered_content.h"
#include "tuning/modules.h"
#include "tuning/tactic.h"

namespace lathe {

// Random operands of a problem at concrete dims, on a device, shared by the trials of one problem.
class TrialData {
 public:
  enum class Use : uint8_t { time, check };  // check: with contents on the host, for expected() and gather_output()
  // To check, a product with more than `most_products` is evaluated in some of its columns.
  static Result<std::unique_ptr<TrialData>> make(const Problem& problem, Use use, Device& device, Queue& queue,
                                                 double most_products = kMostCheckedProducts);

  const Problem& problem() const { return problem_; }
  // Of each output. `tolerance`: how far a right kernel of the root op may be off, as a part of its largest value.
  Result<std::vector<Expected>> expected(double tolerance) const;
  TensorArg arg(const StepInput& input) const;
  std::vector<TensorArg> outputs() const;
  Use use() const { return use_; }
  // An output's memory, dense row-major, in f32; of what expected() gives.
  Result<Tensor> gather_output(size_t i, Device& device, Queue& queue) const;
  Result<> poison_outputs(Device& device, Queue& queue) const;  // so that what is not written shows

 private:
  struct Slot {
    Tensor memory;  // its content on the host, as the strides say; undefined when only kernels see it
    DeviceMemory on_device;
    TensorArg arg;
    int64_t first = 0;  // which element of the memory is the operand's first
    int64_t bytes_before() const { return first * static_cast<int64_t>(size_of(arg.dtype)); }
    std::byte* start() const { return static_cast<std::byte*>(arg.data) - bytes_before(); }
  };
  // Of a tensor of the problem.
  std::optional<int64_t> ids_of(const Operand& operand) const;
  Result<Slot> make_slot(const Operand& operand, uint32_t seed, Use use, Device& device, Queue& queue) const;
  const Slot& slot_of(const Operand& operand) const { return slots_.at(&operand); }
  Taken taken_of(const Operand& operand) const;
  Result<Tensor> content_of(const Operand& operand) const;
  Result<> append(std::span<const Operand> operands, std::vector<Tensor>& to) const;
  // What a program reads of them over a space of these dims.
  Result<> append_padded(std::span<const Operand> operands, const Dims& dims, std::vector<Tensor>& to) const;

  Problem problem_;
  Use use_ = Use::check;
  std::vector<int64_t> columns_;                    // of a product's result that are checked; empty = all
  std::unordered_map<const Operand*, Slot> slots_;  // of all tensors of the problem
};

class Trial {
 public:
  // Packed weights are there so many times that runs, which take them in turns, read about `spread` bytes before they
  // come to the same again; once where that is 0, and where they are few.
  static Result<std::unique_ptr<Trial>> make(Device& device, Modules& modules, Emission emission, const TrialData& data,
                                             Queue& queue, size_t spread = 0);
  Result<> run(Queue& queue);
  size_t turns() const { return inputs_.size(); }

 private:
  Program program_;
  StepModules modules_;
  std::unique_ptr<Kernel> kernel_;
  Emission emission_;  // kernels of the host read its packed weights in place
  std::vector<DeviceMemory> packed_;
  std::vector<std::vector<TensorArg>> inputs_;  // of each turn
  size_t turn_ = 0;
  std::vector<TensorArg> outputs_;
  std::vector<int64_t> symbols_;
  DeviceMemory workspace_;
};

}  // namespace lathe
