// SPDX-License-Identifier: Apache-2.0
// Regions: the pieces of a graph that become one step each (or none, for views).
#pragma once

#include <optional>
#include <vector>

#include "device/program.h"
#include "indexing/index_map.h"

namespace lathe {

enum class RegionKind {
  kernel,     // a heavy op and its fused epilogue
  pointwise,  // a pointwise expression
  movement,   // transpose, slice, expand, concat: strided copies, or nothing when placed for free
  view,       // the same memory under other dims
  eval,       // the plain evaluation of one op
};

struct Region {
  RegionKind kind = RegionKind::eval;
  ir::Node* root = nullptr;      // pointwise: the last node
  std::vector<ir::Node*> nodes;  // in graph order
  std::vector<ir::Value*> outputs;
  Program program;                   // kernel: epilogue (register 0 = the root's result); pointwise: the expression
  std::vector<ir::Value*> operands;  // program inputs; for a kernel they follow the accumulator

  // A kernel may compute inputs of its root as it reads them: from `source` (register 0, of the same shape) and the
  // operands after it.
  struct Prologue {
    size_t input = 0;  // of the root
    ir::Value* source = nullptr;
    Program program;
    std::vector<ir::Value*> operands;
  };
  std::vector<Prologue> prologues;

  // A kernel may read an input of its root in another order than it lies in: `source`, by a map over a space of which
  // each dimension of the input is an axis, or several.
  struct Reading {
    size_t input = 0;  // of the root
    ir::Value* source = nullptr;
    Space space;
    IndexMap map;
  };
  std::vector<Reading> readings;

  // What is read at a point of the region's space: an element, or the fill where there is none.
  struct Read {
    IndexMap map;
    std::optional<float> fill;
  };
  // Where nodes of the region move elements: the space that it works on, and the maps by which operands are read and
  // the result is written. Of a kernel, the space is that of its root's result.
  struct Arrangement {
    Space space;
    std::vector<Read> operands;
    IndexMap result;
    bool is_image = false;  // kernel: what was channels and pixels of the root's result still is
  };
  std::optional<Arrangement> arrangement;
  std::vector<Region> apart;  // kernel: the regions that do the same where no tactic writes in that order

  // The expressions that readings and prologues stand for, as regions of their own, in the order in which they were
  // absorbed. Their nodes are among `nodes`: those of the one absorbed last come first.
  std::vector<Region> absorbed;
  size_t absorbed_input = 0;  // of such a region: the input of the kernel's root that it computes

  const ir::Value* result() const { return outputs[0]; }
  // What is in memory of the root's inputs.
  ir::Value* input(size_t i) const;
  const Reading* reading_of(size_t input) const;  // nullptr = it is read as it lies
  // Takes in an expression that only this kernel reads, as that input.
  void absorb(Region expression, size_t input);
};

struct GroupingOptions {
  bool fuse = true;               // false keeps every node apart (for comparing against)
  bool prologues = false;         // kernels may compute their input as they read it
  bool narrow_types = false;      // f16, bf16 and small integers may be operands and results; regions compute in f32
  bool movement = false;          // expressions may read and write in another order
  bool integer_products = false;  // what follows a product of 8-bit integers may be as if narrow_types were set
};

// Splits the graph into regions, in an order in which every value is produced before it is read. Constant nodes belong
// to none.
std::vector<Region> group_regions(const ir::Graph& graph, const GroupingOptions& options);

// The kernel as it reads what the expression that it absorbed last has written.
Region without_last_absorbed(const Region& region);

// What a kernel computes after its root, as an expression that reads the root's result: for roots whose kernel has no
// epilogue. Nothing when there is none, or when it belongs to the root.
std::optional<Region> epilogue_alone(const Region& kernel);

// A region of this node alone: a kernel when it is heavy (its bias, if any, is the program), else an evaluation.
Region region_alone(ir::Node& node);

}  // namespace lathe
