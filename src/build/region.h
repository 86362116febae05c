// SPDX-License-Identifier: Apache-2.0
// Regions: the pieces of a graph that become one step each (or none, for views).
#pragma once

#include <optional>
#include <vector>

#include "build/axes.h"
#include "device/program.h"
#include "ir/graph.h"

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

  // Where nodes of the region move elements: the axes that it works on, and by which the others are read and written.
  struct Arrangement {
    Shape axes;
    std::vector<AxisView> operands;
    AxisView result;
    std::vector<size_t> parts;  // kernel: how many axes each dimension of the root's result consists of
  };
  std::optional<Arrangement> arrangement;
  std::vector<Region> apart;  // kernel: the regions that do the same where no tactic writes in that order

  std::vector<Region> absorbed;  // the expressions that the prologues compute, as regions of their own

  const ir::Value* result() const { return outputs[0]; }
  // What is in memory of the root's inputs.
  ir::Value* input(size_t i) const;
};

struct GroupingOptions {
  bool fuse = true;           // false keeps every node apart (for comparing against)
  bool prologues = false;     // kernels may compute their input as they read it
  bool narrow_types = false;  // f16, bf16 and small integers may be operands and results; regions compute in f32
  bool movement = false;      // expressions may read and write in another order
};

// Splits the graph into regions, in an order in which every value is produced before it is read. Constant nodes belong
// to none.
std::vector<Region> group_regions(const ir::Graph& graph, const GroupingOptions& options);

// The kernel as it reads what its absorbed expressions have written.
Region without_prologues(const Region& region);

// A region of this node alone: a kernel when it is heavy (its bias, if any, is the program), else an evaluation.
Region region_alone(ir::Node& node);

}  // namespace lathe
