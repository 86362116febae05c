// SPDX-License-Identifier: Apache-2.0
// A plan in memory: what the builder emits and the runtime executes. docs/plan_format.md describes the file.
//
// Plain data, no graph. Everything refers by index; validate() (plan/validate.h) proves every index, rank and size
// sane, and both the writer and the reader call it, so that the runtime relies on it without checks of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/hash.h"
#include "device/device_code.h"
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

// What a value holds. Numbers are part of the format. Tensors are all that this version's runtime holds;
// docs/plan_format.md says what the others are.
enum class ValueKind : uint8_t { tensor, sequence, optional_tensor, optional_sequence };

// A tensor is a typed, strided window into a storage. dims are logical (N C H W whatever the layout); strides, in
// elements, carry the layout and are empty for dense row-major. `offset` is in elements from the storage's start.
struct TensorDesc {
  std::string name;  // of the value in the network; for messages and the inspector
  DType dtype = DType::f32;
  Shape dims;
  Shape strides;
  StorageKind storage = StorageKind::arena;
  uint32_t index = 0;
  Expr offset;
  ValueKind kind = ValueKind::tensor;
};

// A piece of the arena: needed from the start of step `first` to the end of step `last`.
struct Buffer {
  Expr bytes;
  uint32_t first = 0;
  uint32_t last = 0;
};

// Bytes of the weights, mapped and 64-byte aligned. Equal weights are stored once. The name is the same in each build
// of a network, and no other constant of the plan has it: by it weights are exchanged. The digest is of the bytes; it
// tells weights apart, and whoever relies on it for more compares it with them.
struct Constant {
  std::string name;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  Digest digest{};
  uint32_t derived = 0;  // 1 + the value of Refit that it is made of when weights are replaced; 0 = it stays
  bool stripped =
      false;  // the plan lacks its bytes: they come with a refit. Its offset is 0, the digest that of nothing
};

enum class RefitKind : uint8_t { none, all, individual, identical };  // numbers are part of the format

// Weights of the network, as the application gave them.
struct RefitWeights {
  std::string name;  // of setWeightsName(), or in the model; "" = none
  DType dtype = DType::f32;
  std::vector<int64_t> dims;
  std::vector<std::string> layers;  // that have them ...
  std::vector<uint32_t> roles;      // ... as this (nvinfer1::WeightsRole), one for each
  Digest digest{};                  // of what the plan was built with
  bool is_fixed = false;            // the plan was optimised for them: they cannot be replaced
  std::string model_name;           // in the model, where that is another than `name`
  bool is_added = false;            // the application added them to the network: no model has them
};

// Plain evaluation of an op, or a packing (ops/packing.h) where there is none, of one input.
struct RefitStep {
  std::string op, attributes;
  std::vector<int64_t> packing;
  std::vector<uint32_t> inputs;  // values; kNoTensor = omitted
  uint32_t outputs = 1;
};

// How constants follow from weights that can be replaced. Values are numbered: the weights, then the plan's constants
// with a type and dims of their own, then the steps' outputs, in their order. A step reads values before it alone, no
// fixed weights, and no constant that is derived itself.
struct RefitOperand {
  uint32_t constant = 0;
  DType dtype = DType::f32;
  std::vector<int64_t> dims;
};
struct Refit {
  RefitKind kind = RefitKind::none;
  std::vector<RefitWeights> weights;
  std::vector<RefitOperand> operands;
  std::vector<RefitStep> steps;
  // 1 + the code module whose kernel packs constants on a device (base/packing_table.inc); 0 = the host packs them.
  uint32_t code = 0;
};

struct Binding {
  std::string name;
  bool is_input = true;
  TensorId tensor = kNoTensor;
  bool is_shape_tensor = false;        // its values are needed when shapes are set (host memory)
  std::vector<std::string> dim_names;  // "" = unnamed
};

// One profile: for each symbol of Plan::symbols that comes from an input, its range and the value it was tuned for.
struct SymbolProfile {
  int64_t min = 0;
  int64_t opt = 0;
  int64_t max = 0;
  bool operator==(const SymbolProfile&) const = default;
};
struct Profile {
  std::vector<SymbolProfile> symbols;  // parallel to Plan::symbols; opt of computed ones is an estimate
};

// A size that the device has computed, read by the first step that needs it: the symbol's value is one element of a
// list of int64 that the step has as an input.
struct StepCount {
  SymbolId symbol = 0;
  uint32_t input = 0;  // of the step
  Expr element;        // of the list
};

// A kernel of the device's table.
struct HostKernel {
  std::string kernel;
  std::vector<int64_t> params;  // see the kernel's header
  std::string program;          // fusion program, text form; empty = none
};

// Device code and calls of libraries, in order.
struct DeviceLaunches {
  std::string kernel;   // for people, like the program
  std::string program;  // what the code computes of each element
  std::vector<Launch> launches;
  Expr workspace;  // bytes that the launches share
};

// The input's elements to the output's places, both with any strides.
struct Copy {};

// The plain evaluation of the step's op, on the host and on dense tensors.
struct Evaluation {};

// The application's plugin that the step's op and attributes describe, whatever the device. Its `counts` are the sizes
// that it writes: `input` is then an output of the step, which holds one number, and `element` what that cannot exceed.
struct PluginCall {};

enum class BlockKind : uint8_t { loop = 1, branch = 2, call = 3 };  // numbers are part of the format

// The part of a tensor that one round of a loop reads or writes: one index of an axis, from the last one down if
// `reversed`.
struct Slice {
  uint32_t axis = 0;
  bool reversed = false;
};

// Steps of a block. They follow the block's step, and the bodies before, in Plan::steps; those of blocks inside count.
struct Body {
  uint32_t steps = 0;
  std::vector<TensorId> params;   // set when the body begins; kNoTensor = not wanted
  std::vector<TensorId> results;  // what it leaves; a result that is the block's output itself needs no copy
  // Without which its steps have no meaning, on sizes known before the block: checked when it begins, if it ever does.
  std::vector<Constraint> constraints = {};
};

// Control flow. Bodies read whatever has been written before the block; of what they write, only the block's outputs
// outlive it. docs/plan_format.md lists operands, params and results of each kind.
struct Block {
  BlockKind kind = BlockKind::call;
  uint32_t carried = 0;        // of a loop: values that each round hands to the next
  std::vector<Slice> scanned;  // of a loop: inputs of which each round reads a slice
  std::vector<Slice> stacked;  // of a loop: outputs of which each round writes a slice
  std::vector<Body> bodies;    // loop, call: one; branch: what runs when the condition holds, and else
  Shape trips;                 // of a loop: its trip count where sizes tell it, instead of an operand; else empty
};

// The alternatives are in the order of `Work` in plan.fbs.
using Work = std::variant<HostKernel, DeviceLaunches, Copy, Evaluation, Block, PluginCall>;

// `op` and `attributes` (ops/attributes text form) are there for evaluations and plugins, and for kernels where the
// op's shape rule makes the sizes of results, while running, of the contents of small inputs; inputs and outputs are
// then the op's, in its order.
struct Step {
  Work work = Evaluation();
  std::vector<TensorId> inputs;  // kNoTensor = omitted
  std::vector<TensorId> outputs;
  std::string op, attributes;
  std::vector<StepCount> counts;  // read before the step's sizes are known: the host waits for the steps before it
  uint32_t stream = 0;            // in a section: an auxiliary stream, or 0, the one that the run is given

  // What the inspector shows.
  std::string name;                 // "conv1 + relu1"
  std::vector<std::string> origin;  // names of the network's layers that ended up here
  std::string tactic;               // the chosen tactic's configuration, printable
  float milliseconds = 0;           // measured while building; 0 = not measured

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(work);
  }
  std::string_view kind() const;  // "host kernel", "launches", "copy", "evaluation", "loop", "branch", "call", "plugin"
  std::string_view kernel() const;   // of what runs it, for people: "eval" for what the host does
  std::string_view program() const;  // fusion program; "" = none
};

// Steps of branches that do not depend on each other: those of one Step::stream follow each other, and run beside those
// of other streams. What comes before the section is done when they begin, and they are when what comes behind it does.
struct ParallelSection {
  uint32_t first = 0;  // step
  uint32_t end = 0;    // behind the last one
};

// Weights that the file of the plan does not hold: what it says of them instead.
struct DetachedWeights {
  uint64_t bytes = 0;
  uint64_t checksum = 0;
  Digest digest{};
  bool in_pieces = false;  // as of a section
};

// Where the bytes of a constant lie while the plan is made.
struct WeightsPiece {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // keeps them alive
};

// In Plan::metadata: weights may lie in the host's memory while the plan runs (BuilderFlag::kWEIGHT_STREAMING).
inline constexpr std::string_view kWeightStreamingKey = "lathe.weight_streaming";

struct Plan {
  std::string name;      // of the network
  std::string target;    // "cpu-x86_64-avx512"; what the device's target check understands
  uint32_t threads = 1;  // tuned for; advice
  std::string tuned_on;  // what timings were taken on or are in the cache for: Device::timing_key(); for people
  std::vector<Symbol> symbols;
  std::vector<Profile> profiles;        // at least one
  std::vector<Constraint> constraints;  // without which the steps have no meaning: checked when their symbols are known
  std::vector<TensorDesc> tensors;
  std::vector<Buffer> buffers;
  std::vector<Constant> constants;
  uint32_t dynamic_slots = 0;
  std::vector<Binding> bindings;          // inputs first, in the network's order
  std::vector<Step> steps;                // in execution order; a block's own follow it
  std::vector<ParallelSection> sections;  // in order, of device launches outside of blocks
  std::vector<std::pair<std::string, std::string>> metadata;
  Refit refit;

  std::span<const std::byte> weights;  // not owned; empty too when they are detached and were not supplied
  // Instead of `weights`, one of each constant, each at a 64-byte offset behind the last: of a plan that was not read,
  // and of one whose weights are in a device's memory alone, but for some small ones.
  std::vector<WeightsPiece> pieces;
  uint64_t pieces_bytes = 0;  // of all of them, with the gaps
  std::optional<DetachedWeights> detached;
  std::string weights_file;         // where detached weights are, for messages; "" = the writer did not say
  std::vector<CodeModule> codes;    // of device code; their bytes are not owned
  std::vector<SourceFile> headers;  // that sources among them include, as deflate_bytes() makes them
  bool is_code_deflated = false;    // likewise all images but for source

  bool streams_weights() const;        // as kWeightStreamingKey says
  uint32_t auxiliary_streams() const;  // that the steps are spread over, besides the one that a run is given
  bool is_stripped() const;            // whether its file lacks constants
  uint64_t stripped_bytes() const;     // of those
  uint64_t weights_bytes() const { return detached ? detached->bytes : pieces.empty() ? weights.size() : pieces_bytes; }
};

}  // namespace lathe::plan
