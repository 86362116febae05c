// SPDX-License-Identifier: Apache-2.0
// One kernel of an op of the graph: its tensors are In<i> and Out<i>, its attributes the struct Attributes, whose
// enumerations compare with Attributes::<field>_type::<value>.
#pragma once

#include "kernels/cuda/source.h"

namespace lathe::cuda {

class OpSource {
 public:
  // The emission takes the kernel up when it is finished.
  OpSource(std::string_view header, const Problem& problem, Emission& emission);

  // Names of the objects. `raw`: as bits of the element's size.
  std::string input(size_t i, bool raw = false) { return input_as(i, problem_.inputs[i], raw); }
  std::string input_as(size_t i, Operand view, bool raw = false);
  std::string output(size_t i, bool raw = false);
  std::string list(std::string_view name, const Shape& values);
  // The contents of an integer input, read as name(i): known to the launch, or read on the device.
  std::string contents(size_t i, std::string_view name);
  std::string fusion();
  // Whether input i is there.
  bool has(size_t i) const { return i < problem_.inputs.size() && !problem_.inputs[i].omitted; }
  Source& source() { return source_; }

  // One thread for each of `count`, or blocks as given.
  void finish(std::string_view call, const Expr& count);
  void finish_blocks(std::string_view call, const Expr& blocks, uint32_t threads, uint32_t shared_bytes);

 private:
  size_t step_input(StepInput input);

  const Problem& problem_;
  Emission& emission_;
  Source source_;
};

// Small integers that a constant input holds; nullopt when it is no constant.
std::optional<Ints> known_contents(const Problem& problem, size_t input);
std::string double_text(double value);  // in device code
// The type in which an element is computed: "double", "int64", or "uint64" for u64.
std::string_view wide_type(DType dtype);
std::string_view sum_type(DType dtype);  // of products: "double", "uint64" (wraps), "int32" for 8-bit integers

// Why generic code cannot run it; the emission otherwise.
using EmitOp = Result<Emission> (*)(const Problem& problem);
struct GenericOp {
  OpKind kind;
  EmitOp emit;
  bool takes_program = false;  // fused pointwise expressions after it
};
// The groups of ops, each in a file of its name.
std::span<const GenericOp> pointwise_ops();
std::span<const GenericOp> movement_ops();
std::span<const GenericOp> indexing_ops();
std::span<const GenericOp> row_ops();
std::span<const GenericOp> window_ops();
std::span<const GenericOp> contraction_ops();
std::span<const GenericOp> sampling_ops();
Result<Emission> emit_pointwise_program(const Problem& problem);  // attributes = null

}  // namespace lathe::cuda
