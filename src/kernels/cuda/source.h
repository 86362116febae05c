// SPDX-License-Identifier: Apache-2.0
// Writes the text of one kernel: descriptors of its tensors, its fusion program, its constants, and the entry that
// calls a template of a device header. What depends on shapes only known later becomes int64 arguments of the launch.
//
//   Source source("gemm/gemm.cuh");
//   source.input(0, problem.inputs[0], "A");    // declares type A (lib/tensor.cuh says what is in it) and object A_
//   source.output(0, problem.outputs[0], "C");
//   source.fusion(problem, 2);                  // type Fusion, object fusion_; its operands are the inputs from 2 on
//   return source.finish("gemm<64, 64>(A_, C_, fusion_);", grid, 128, shared_bytes);
//
// Equal problems give equal text: it is the key of caches.
#pragma once

#include "kernels/cuda/levels.h"
#include "kernels/cuda/program_lines.h"
#include "tuning/tactic.h"

namespace lathe::cuda {

// The dimension along which neighbours lie side by side; -1 = none. Dimensions of extent 1 do not count.
int unit_dim(const Operand& operand);
// Elements of the longest vector (a power of two, 16 bytes at most) that can be accessed at every multiple of its
// length along unit_dim(): by the strides, for a first element at a multiple of 16 bytes.
int vector_width(const Operand& operand);
// `operand` with the dims of `to`, aligned at the last, with stride 0 where it has extent 1 or no dimension. What has
// padding remains as it is.
Operand broadcast(const Operand& operand, const Operand& to);
std::string_view device_type(DType dtype);  // its name in lib/types.cuh
DType raw_type(DType dtype);                // the unsigned integer of its size: bits that are moved as they are

class Source {
 public:
  explicit Source(std::string_view header);

  void input(size_t index, const Operand& operand, std::string_view name);  // `index` of the emission's inputs
  void output(size_t index, const Operand& operand, std::string_view name);
  // For an epilogue: fusion_.apply<D, W>(v, c, count), of pairs (v, w, c, count). For a pure pointwise program, which
  // has no accumulator: fusion_.evaluate<D, W>(v, c, count) with an array for each of its Fusion::kOutputs. An epilogue
  // of several: fusion_.evaluate<D, W>(v, results, c, count).
  void fusion(const Problem& problem, size_t first_input);
  // An epilogue whose sink rounds what Fusion::kRounds says it has to (kernels/cuda/levels.h).
  void rounding_fusion(const Problem& problem, size_t first_input);
  // The same with other views of the output and of the program's operands.
  void fusion(const Problem& problem, const Operand& output, const std::vector<Operand>& views, size_t first_input);
  void rounding_fusion(const Problem& problem, const Operand& output, const std::vector<Operand>& views,
                       size_t first_input);
  // For a problem's prologue: type Prologue, object prologue_ (of several, `tensor` goes before both names) with
  // apply<D, W>(v, c, count) in the dims of views[0]; the others are its operands.
  void prologue(const Program& program, const std::vector<Operand>& views, size_t first_input,
                std::string_view tensor = "");
  // Integers by index: type `name`, object name##_, read as name##_(i).
  void list(std::string_view name, const Shape& values);
  // A parameter that describes an input to the copy engine: object `name`, of lib/tensor_copies.cuh.
  void tensor_map(TensorMap map, std::string_view name);
  // A pointer `name` to elements of `type` that many bytes into the workspace.
  void workspace(std::string_view name, Expr byte_offset, std::string_view type);
  // The expression in device code: a literal, or the name of an argument.
  std::string number(const Expr& expr);
  void define(std::string_view name, int64_t value);  // constexpr long
  void include(std::string_view header);              // another one than the kernel's
  void declare(std::string_view text);                // anything else at namespace scope, after what is there by now

  // `call` is the kernel's body. Registers are limited so that min_blocks blocks fit a multiprocessor.
  SourceLaunch finish(std::string_view call, std::array<Expr, 3> grid, uint32_t block, uint32_t shared_bytes,
                      int min_blocks = 1);

 private:
  struct ProgramNames {
    std::string_view type, object, operand;
  };
  struct ProgramText {
    const Program& program;
    size_t accumulators;           // of the kernel, which its first registers hold
    std::optional<Levels> levels;  // that it leaves to be rounded
    Exactness exactness = Exactness::full;
  };
  void declare_fusion(const Problem& problem, const Operand& output, const std::vector<Operand>& views,
                      size_t first_input, const std::optional<Levels>& levels);
  void declare_program(const ProgramNames& names, const ProgramText& text, size_t rank,
                       std::span<const Operand> operands, size_t first_input);
  void tensor(LaunchArg arg, const Operand& operand, std::string_view name);
  std::string index_function(std::string_view name, const Shape& values, std::vector<std::string>& members);

  std::string headers_;  // lines
  std::string declarations_;
  std::vector<TensorMap> maps_;
  std::string map_parameters_, parameters_;  // of the entry, comma-separated: maps, pointers
  std::string objects_;                      // first lines of the entry
  std::vector<LaunchArg> args_;
  std::vector<Expr> numbers_;
};

}  // namespace lathe::cuda
