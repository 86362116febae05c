// SPDX-License-Identifier: Apache-2.0
// Writes regions into a plan: tensors, storages, constants, steps.
#pragma once

#include "build/build.h"
#include "build/placement.h"

namespace lathe {

class Emitter {
 public:
  enum class Mode : uint8_t { emit, survey };  // survey: only tells the tuner which problems there are
  // All references must outlive the emitter. `profiles` gives each symbol's range and optimum; profile 0 is tuned for.
  Emitter(const ir::Graph& graph, const Placement& placement, std::vector<plan::Profile> profiles, Tuner& tuner,
          const BuildOptions& options, BuiltPlan& out, Mode mode = Mode::emit);

  Result<> emit_inputs();
  Result<> emit(const Region& region);
  Result<> emit_outputs();
  Result<> finish();

 private:
  struct Storage {
    plan::StorageKind kind;
    uint32_t index;
  };

  // Storages and tensors
  static Shape strides_of(const plan::Tensor& tensor);  // row-major where it notes none
  Storage storage_of(const ir::Value* root);
  plan::TensorId tensor_at(const ir::Value* value, Shape dims, Shape strides, const Location& location);
  plan::TensorId tensor_of(const ir::Value* value);         // as placed
  Result<plan::TensorId> dense_of(const ir::Value* value);  // row-major, by a copy when it must
  plan::TensorId constant_of(const Tensor& content);
  plan::TensorId temporary(std::string name, DType dtype, const Shape& dims);
  plan::TensorId add_tensor(plan::Tensor tensor);

  // Steps
  Result<> emit_kernel(const Region& region);
  struct Copy {
    size_t input = 0;  // of the node
    plan::Tensor from, to;
  };
  std::vector<Copy> copies_of(const ir::Node& node, size_t output);
  enum class Copies : uint8_t { windows, any };  // windows: one for each result, read forwards
  Result<bool> emit_copies(const ir::Node& node, Copies which);
  Result<> emit_movement(const Region& region);
  Result<> emit_concat(const Region& region);
  Result<> emit_view(const Region& region);
  Result<> emit_alone(ir::Node& node);
  Result<> emit_eval(const ir::Node& node);
  Result<Choice> choose(const Problem& problem);
  Result<Choice> emit_choice(const Region& region);
  Result<bool> emit_counted(const Region& region, std::vector<std::string>& refusals);
  void note_refusals(size_t first, const std::vector<std::string>& refusals);
  std::optional<std::string> excess_of(const Problem& problem, const CountedTactic& tactic,
                                       const CountedEmission& emission, SymbolId counted) const;
  Result<> describe_code(const Emission& emission, plan::Step& step);
  Result<> describe_kernel(const Problem& problem, const Choice& choice, const Emission& emission, plan::Step& step);
  Result<> emit_copy(plan::TensorId from, plan::TensorId to, std::string name, const std::vector<std::string>& origin);
  void add_step(plan::Step step, std::string kind, const Choice& choice = {});
  plan::TensorId as_read(const Region& region, size_t input, const Operand& operand, bool transposed);
  plan::TensorId tensor_along(const ir::Value* value, const Operand& operand);
  bool wants_channels_last(const Region& region) const;
  Shape pixel_dims(const ir::Value* x) const;

  void drop_unread_steps();
  void drop_unused_symbols();

  // Problems
  Problem problem_of(const Region& region) const;
  void add_inputs(const Region& region, Problem& problem) const;
  void add_operands(const Region& region, Problem& problem) const;
  void add_arranged(const Region& region, Problem& problem) const;
  Operand operand_in(const Region& region, const ir::Value* value, const Shape& dims) const;
  Operand along_axes(Operand operand, const Region::Read& read, const Space& space) const;
  Operand operand_of(const ir::Value* value, const Shape* broadcast_to = nullptr) const;
  Operand operand_at(const plan::Tensor& tensor) const;
  Dims at_optimum(const Shape& shape) const;

  const ir::Graph& graph_;
  const Placement& placement_;
  Tuner& tuner_;
  const TacticList& tactics_;
  const int64_t least_pixel_;
  const CountedTacticList& counted_;
  BuiltPlan& out_;
  const Mode mode_;
  plan::Plan& plan_;
  std::vector<int64_t> optimum_;                                    // per symbol
  std::unordered_map<const ir::Value*, Storage> storages_;          // of roots
  std::unordered_map<const ir::Value*, uint32_t> output_bindings_;  // roots that a graph output's binding holds
  std::unordered_map<const ir::Value*, plan::TensorId> tensors_;
  std::unordered_map<const ir::Value*, plan::TensorId> dense_;
  std::unordered_map<const ir::Value*, plan::TensorId> channels_last_;
  std::unordered_map<uint64_t, std::vector<plan::TensorId>> constants_;  // by content hash
  std::vector<bool> outputs_written_;  // output bindings whose producer writes them directly
};

}  // namespace lathe
