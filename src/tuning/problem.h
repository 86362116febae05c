// SPDX-License-Identifier: Apache-2.0
// What a tactic is asked to solve: one region, with everything that its speed or legality may depend on.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/program.h"
#include "device/target.h"
#include "ops/derivation.h"

namespace lathe {

// A dimension of an operand; the default has one element.
struct OperandDim {
  Expr extent = 1, stride = 0;
  int64_t opt_extent = 1, opt_stride = 0;  // under the shapes that the tuner measures
};

// A tensor as a kernel will see it. dims are logical; strides, in elements, carry the layout.
struct Operand {
  DType dtype = DType::f32;
  Shape dims;
  Shape strides;
  Dims opt_dims;  // under the shapes that the tuner measures
  Dims opt_strides;
  Expr offset;                       // elements from the start of the storage, which is aligned for any access
  const Tensor* constant = nullptr;  // content when it is known, and stays what it is
  // The same also where it follows from weights that can be replaced, as `derivation` says. A kernel may then have it
  // in another order only if its emission says in which.
  const Tensor* weights = nullptr;
  DerivationPtr derivation;
  bool omitted = false;
  // Of what an op reads or writes in another order, so that its dimensions need not lie at one stride: how many of
  // `dims`, which are in the op's order, are collapsed into each of the op's own (MLIR's reassociation of
  // tensor.collapse_shape). A product's rows of 2 images and 512 pixels: dims {2, 512, 768}, reassociation {2, 1}.
  // Empty = one each.
  std::vector<size_t> reassociation;
  // Of a pointwise program's operand: the program sees the number wherever the operand, whose `dims` are those of its
  // memory, has no element. Its rank is the result's.
  struct Padding {
    Shape begin;  // in each dimension, where the operand's first element is
    float value = 0;
  };
  std::optional<Padding> padding;
  // Of an input of the root, what the kernel computes of each element as it reads it: register 0 is the element, the
  // others are those of `operands`, which broadcast to it. Without inputs = it is read as it is.
  Program program;
  std::vector<Operand> operands;
  // Of such an operand, where it does not broadcast: how many neighbours along each dimension share one of its elements
  // (ops quantize and dequantize). The input is then a matrix of packed levels (tuning/packed_weights.h), whose program
  // takes off the zero point, operand 1 if there is one, and multiplies by the scale, operand 0.
  Dims blocks;
  // Of keys or values [batch, heads, keys, size] of attention that lie in blocks of one pool, which all sequences
  // share: `strides` are those within a block, 0 along the batch. operands[0] is the table [batch, keys / size of a
  // block] of the numbers of blocks, and those of `program` follow it. A number counts from the end where it is
  // negative; keys of a block that is not there are 0.
  struct Pages {
    OperandDim blocks;  // of the pool
    Expr size;          // keys of a block
    int64_t opt_size = 0;
  };
  std::optional<Pages> pages;
  // The op that normalises rows, or null: of a product's first factor, as they are read, along K, with `operands` as
  // its scale and bias, if it has them; of a product's last result, with the problem's last operands. That result is
  // then none of the program's, but the rows of the one that the program has, which may be a result before it.
  const Attributes* normalization = nullptr;

  int rank() const { return static_cast<int>(dims.size()); }
  OperandDim dim(size_t d) const { return {dims[d], strides[d], opt_dims[d], opt_strides[d]}; }
  void insert_dim(size_t at, const OperandDim& dim);
  void append_dim(const OperandDim& dim) { insert_dim(dims.size(), dim); }
  OperandDim take_out_dim(size_t at);
  bool is_computed() const { return program.num_inputs > 0; }
  // Of `operands`, those of `program`.
  std::span<const Operand> program_operands() const { return std::span(operands).subspan(pages ? 1 : 0); }
  bool is_scaled_by_blocks() const { return !operands.empty() && !operands[0].blocks.empty(); }
};

// The pool of an operand with pages: [blocks, heads, size of a block, size].
Operand pool_of(const Operand& operand);
// Whether some dimension of the op consists of several, or of none.
bool is_collapsed(const Operand& operand);
// The op's own dimensions: those that are collapsed, as one.
Shape whole_dims(const Operand& operand);
Dims opt_whole_dims(const Operand& operand);

enum class Layout : uint8_t { linear, channels_last };

struct InlinedStep;

struct Problem {
  const Attributes* attributes = nullptr;  // of the root op; null = a pure pointwise region
  std::vector<Operand> inputs;             // the root's, in the op's order, bias excluded (it is part of the program)
  std::vector<Operand> operands;           // the program's, broadcast to the output: its inputs behind the accumulators
  // Of an op that has several results by itself, those; else one for each result of the program.
  std::vector<Operand> outputs;
  Program program;               // identity = none
  std::vector<int64_t> symbols;  // values of the symbols in dims and strides while tuning
  Target target;
  bool tf32 = false;    // products of f32 may round their operands to TF32
  bool sparse = false;  // the root's weights are 2:4 sparse along what is summed over, and kernels may leave out zeros
  // Of products: the program has two of the op's results, of neighbouring columns 2 i and 2 i + 1, for each column i of
  // the output: registers 0 and 1.
  bool pairs = false;
  bool in_place = false;  // input 0 is the output's memory: of ops that replace parts of it, which alone are written
  // Steps before it that the kernel does itself, in the order of the inputs that they write.
  std::vector<InlinedStep> inlined;

  template <class A>
  const A& attrs() const {
    return static_cast<const A&>(*attributes);
  }
  // Registers that hold the op's own results.
  size_t accumulators() const { return attributes ? (pairs ? 2 : 1) : 0; }
  // Whether it moves one operand to the output and computes nothing.
  bool is_copy() const { return !attributes && operands.size() == 1 && program.is_identity(); }
  bool is(OpKind kind) const { return attributes && attributes->kind() == kind; }
  // What normalises the rows of the program's result; null = nothing does.
  const Attributes* result_normalization() const { return outputs.empty() ? nullptr : outputs.back().normalization; }
  bool has_input(size_t i) const { return i < inputs.size() && !inputs[i].omitted; }
};

// A step that writes an input of another one's root, which `inputs` of that problem describe as if it had been done.
// What a pointwise step writes is not in memory then: it is computed as it is read. A tensor that is updated in place
// is, and becomes an output of the kernel.
struct InlinedStep {
  size_t input = 0;
  Problem problem;
};

// What a problem may need beyond dense tensors and a program behind the op. A tactic names the features that it
// supports, and unsupported_feature() gives the refusal of a problem that needs another. Sets have bit i for input i.
struct Features {
  bool further_results = false;          // beyond the first, of the op, or of a program without one
  bool further_program_results = false;  // of the program behind an op
  bool reassociated_result = false;      // Operand::reassociation
  bool pairs = false;                    // Problem::pairs
  bool fill = false;                     // Operand::padding, of the program's operands
  bool mixed_factors = false;            // of a product: of two types, as u8 and i8
  uint32_t permuted_inputs = 0;          // in another order, each dimension still at one stride
  uint32_t reassociated_inputs = 0;      // in another order, with dimensions of several axes
  uint32_t prologues = 0;                // Operand::program
  uint32_t pages = 0;                    // Operand::pages
  bool float8 = false;                   // is_factor_float8(), of factors, of what programs read and of results
  bool packed_weights = false;           // of a product: Operand::is_scaled_by_blocks(), its second factor
  bool normalized_rows = false;          // of a product: Operand::normalization
  bool inlined = false;                  // Problem::inlined
};
std::optional<std::string> unsupported_feature(const Problem& problem, const Features& supported);

// Every tensor that is read or written.
std::vector<const Operand*> tensors_of(const Problem& problem);

// Canonical text: equal texts are the same problem for tuning. Contents of constants are left out, that they are
// constant is not. Dims that are open appear with their optimum and as expressions.
std::string to_text(const Problem& problem);

// Dims and strides of a dense tensor in a layout.
Shape dense_strides(const Shape& dims, Layout layout);
Dims dense_strides(const Dims& dims, Layout layout);
// Strides that differ from `layout`'s only in dims of extent 1 are still dense.
bool is_dense(const Shape& dims, const Shape& strides, Layout layout);

}  // namespace lathe
