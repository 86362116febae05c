// SPDX-License-Identifier: Apache-2.0
// A plan in memory: what the builder emits and the runtime executes. docs/plan_format.md describes the file.
//
// Plain data, no graph. Everything refers by index; validate() (plan/validate.h) proves every index, rank and size
// sane, and both the writer and the reader call it, so that the runtime relies on it without checks of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "device/launch.h"
#include "shape/constraint.h"

namespace lathe::plan {

using TensorId = uint32_t;
inline constexpr TensorId kNoTensor = UINT32_MAX;  // an omitted optional operand

enum class StorageKind : uint8_t {
  arena,     // buffer `index` of Plan::buffers
  constant,  // constant `index` of Plan::constants
  binding,   // the address that the application gives to binding `index`
  dynamic,   // sized while running (its dims hold computed symbols): slot `index` of the context's dynamic pool
};

// A tensor is a typed, strided window into a storage. dims are logical (N C H W whatever the layout); strides, in
// elements, carry the layout and are empty for dense row-major. `offset` is in elements from the storage's start.
struct Tensor {
  std::string name;  // of the value in the network; for messages and the inspector
  DType dtype = DType::f32;
  Shape dims;
  Shape strides;
  StorageKind storage = StorageKind::arena;
  uint32_t index = 0;
  Expr offset;
};

// A piece of the arena: needed from the start of step `first` to the end of step `last`.
struct Buffer {
  Expr bytes;
  uint32_t first = 0;
  uint32_t last = 0;
};

// Bytes of the weights section, mapped and 64-byte aligned. Equal weights are stored once.
struct Constant {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct Binding {
  std::string name;
  bool is_input = true;
  TensorId tensor = kNoTensor;
  bool is_shape_tensor = false;        // its values are needed when shapes are set (host memory)
  std::vector<std::string> dim_names;  // "" = unnamed
};

// A module of device code: bytes of the code section, 64-byte aligned.
using CodeModule = std::span<const std::byte>;

// One profile: for each symbol of Plan::symbols that comes from an input, its range and the value it was tuned for.
struct SymbolProfile {
  int64_t min = 0;
  int64_t opt = 0;
  int64_t max = 0;
  bool operator==(const SymbolProfile&) const = default;
};
struct Profile {
  std::vector<SymbolProfile> symbols;  // parallel to Plan::symbols; computed symbols hold their bounds
};

// A size that the device has computed, read by the first step that needs it: the symbol's value is one element of a
// list of int64 that the step has as an input.
struct StepCount {
  SymbolId symbol = 0;
  uint32_t input = 0;  // of the step
  Expr element;        // of the list
};

// One kernel launch. kernel "eval" runs the plain evaluation of op `op` with `attributes` (ops/attributes text form);
// every other name is looked up in the device's kernel table. A kernel has an op where the op's shape rule makes the
// sizes of its results, while running, of the contents of its small inputs; they are the op's, in its order.
struct Step {
  std::string kernel;
  std::vector<TensorId> inputs;  // kNoTensor = omitted
  std::vector<TensorId> outputs;
  std::vector<int64_t> params;    // see the kernel's header
  std::string program;            // fusion program, text form; empty = none
  std::string op;                 // for "eval", and where sizes follow from its shape rule
  std::string attributes;         // the op's
  std::vector<Launch> launches;   // device code that the step runs, in order; the kernel's name is then for people
  Expr workspace;                 // bytes that the launches share
  std::vector<StepCount> counts;  // read before the step's sizes are known: the host waits for the steps before it

  // What the inspector shows.
  std::string name;                 // "conv1 + relu1"
  std::vector<std::string> origin;  // names of the network's layers that ended up here
  std::string tactic;               // the chosen tactic's configuration, printable
  float milliseconds = 0;           // measured while building; 0 = not measured
};

struct Plan {
  std::string name;      // of the network
  std::string target;    // "cpu-x86_64-avx512"; what the device's target check understands
  uint32_t threads = 1;  // tuned for; advice
  std::vector<Symbol> symbols;
  std::vector<Profile> profiles;        // at least one
  std::vector<Constraint> constraints;  // without which the steps have no meaning: checked when their symbols are known
  std::vector<Tensor> tensors;
  std::vector<Buffer> buffers;
  std::vector<Constant> constants;
  uint32_t dynamic_slots = 0;
  std::vector<Binding> bindings;  // inputs first, in the network's order
  std::vector<Step> steps;        // in execution order
  std::vector<std::pair<std::string, std::string>> metadata;

  std::span<const std::byte> weights;  // the weights section; not owned
  std::vector<CodeModule> codes;       // not owned
};

}  // namespace lathe::plan
