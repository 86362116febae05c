// SPDX-License-Identifier: Apache-2.0
// Valid plans for tests: a chain of steps with views, residuals, constants, symbols, programs, launches and blocks,
// from a seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "plan/blocks.h"
#include "plan/plan.h"

namespace lathe::plan {

struct OwnedPlan {
  Plan plan;  // plan.weights points into `weights`, plan.codes into `codes`
  std::vector<std::byte> weights;
  std::vector<std::vector<std::byte>> codes;
};

// Constant 1 follows from weights, and constant 2, which is stripped, from these and constant 0.
inline void add_refit(Plan& plan, RefitKind kind) {
  Refit& refit = plan.refit;
  refit.kind = kind;
  refit.weights = {{"w", DType::f32, {2, 3}, {"conv", "other"}, {0, 1}, digest_of(plan.weights), false, "", false},
                   {"stays", DType::f16, {}, {}, {}, digest_of({}), true, "stays in the model", true}};
  refit.operands = {{0, DType::i8, {static_cast<int64_t>(plan.constants[0].bytes)}}};
  refit.steps = {{"reshape", "{allow_zero=true}", {}, {0, kNoTensor}, 1},
                 {"", "", {1, 6, 1, 0, 0, 6, 1, 1}, {3}, 1},
                 {"split", "{axis=0}", {}, {2, 4}, 2}};
  plan.constants[1].derived = 1 + 3;
  plan.constants[2].derived = 1 + 6;
  plan.constants[2].stripped = true;
  plan.constants[2].offset = 0;
  plan.constants[2].digest = {};
}

class PlanGenerator {
 public:
  explicit PlanGenerator(uint32_t seed) : random_(seed) {}

  // With `modules` of device code, which some steps launch, and with steps of all kinds of blocks if `blocks`.
  OwnedPlan make(size_t steps, size_t weight_bytes_each, size_t modules = 0, bool blocks = false) {
    Plan& plan = owned_.plan;
    weight_bytes_ = weight_bytes_each;
    plan.name = "net" + std::to_string(pick(1000));
    plan.target = "cpu-x86_64-avx512";
    plan.threads = 1 + pick(8);
    plan.tuned_on = "machine " + std::to_string(pick(3));
    add_symbols();
    const TensorId input = add_binding("input", true, {batch(), 3, width()});
    TensorId current = input, skip = input;
    for (size_t i = 0; i < steps; ++i) {
      const TensorId next = i + 1 == steps ? add_binding("output", false, {batch(), 3, width()}) : add_buffer();
      if (blocks && pick(3) == 0)
        add_block(current, next, 0);
      else
        add_step(current, pick(3) == 0 ? skip : kNoTensor, next);
      if (pick(4) == 0) skip = next;
      current = next;
    }
    if (blocks && pick(2) == 0) add_sequence();
    close_lifetimes();
    add_profiles();
    plan.constraints.push_back({Relation::at_most, 16, width(), "pooling 'p'"});
    if (pick(2) == 0) plan.constraints.push_back({Relation::equal, mod(batch() * width(), 2), 0, "reshape 'r'"});
    plan.metadata = {{"author", "test"}, {"labels", std::string(pick(40), 'x')}};
    plan.weights = owned_.weights;
    for (Constant& c : plan.constants) c.digest = digest_of(plan.weights.subspan(c.offset, c.bytes));
    if (modules > 0) add_launches(modules);
    if (modules > 0) add_section();
    return std::move(owned_);
  }

 private:
  uint32_t pick(uint32_t bound) { return bound == 0 ? 0 : static_cast<uint32_t>(random_() % bound); }
  static Expr batch() { return Expr::symbol(0); }
  static Expr width() { return Expr::symbol(1); }

  void add_symbols() {
    Plan& plan = owned_.plan;
    plan.symbols.push_back({"batch", SymbolSource::input_dim, 0, 0, {0, Range::kUnbounded}});
    plan.symbols.push_back({"", SymbolSource::input_dim, 0, 2, {1, 4096}});
    plan.symbols.push_back({"kept", SymbolSource::computed, 0, 0, {0, 1000}});
  }

  TensorId add_tensor(TensorDesc t) {
    owned_.plan.tensors.push_back(std::move(t));
    return static_cast<TensorId>(owned_.plan.tensors.size() - 1);
  }

  TensorId add_binding(const std::string& name, bool is_input, Shape dims) {
    Plan& plan = owned_.plan;
    const auto index = static_cast<uint32_t>(plan.bindings.size());
    const TensorId id = add_tensor({name, DType::f32, std::move(dims), {}, StorageKind::binding, index, 0});
    plan.bindings.push_back({name, is_input, id, false, {"batch", "", "width"}});
    return id;
  }

  // Needed from the step that comes next.
  TensorId add_buffer() {
    Plan& plan = owned_.plan;
    const auto index = static_cast<uint32_t>(plan.buffers.size()), step = static_cast<uint32_t>(plan.steps.size());
    const Expr elements = batch() * 3 * width();
    const bool padded = pick(2) == 0;
    plan.buffers.push_back({padded ? 64 * ceildiv(4 * elements, 64) + 64 : 4 * elements, step, 0});
    TensorDesc t{"t" + std::to_string(step), DType::f32, {batch(), 3, width()}, {}, StorageKind::arena, index, 0};
    if (padded) t.offset = 4;
    if (pick(2) == 0) t.strides = {3 * width(), 1, 3};  // NHWC-like
    return add_tensor(std::move(t));
  }

  // One element in a buffer of its own.
  TensorId add_scalar(const char* name, DType dtype) {
    Plan& plan = owned_.plan;
    plan.buffers.push_back({64, static_cast<uint32_t>(plan.steps.size()), 0});
    const auto index = static_cast<uint32_t>(plan.buffers.size() - 1);
    return add_tensor({name, dtype, {}, {}, StorageKind::arena, index, 0});
  }

  // The first element of a new constant.
  TensorId add_constant_scalar(DType dtype) {
    TensorDesc t = owned_.plan.tensors[add_constant(8)];
    t.dtype = dtype;
    t.dims = {};
    return add_tensor(std::move(t));
  }

  TensorId add_dynamic(ValueKind kind) {
    const uint32_t slot = owned_.plan.dynamic_slots++;
    return add_tensor({"d", DType::i8, {Expr::symbol(2)}, {}, StorageKind::dynamic, slot, 0, kind});
  }

  void add_sequence() {
    Step s;
    s.op = "split_to_sequence";
    s.name = "sequence";
    s.inputs = {owned_.plan.bindings[0].tensor};
    s.outputs = {add_dynamic(static_cast<ValueKind>(1 + pick(3)))};
    owned_.plan.steps.push_back(std::move(s));
  }

  TensorId add_constant(size_t bytes) {
    Plan& plan = owned_.plan;
    const size_t offset = (owned_.weights.size() + 63) / 64 * 64;
    owned_.weights.resize(offset + bytes);
    for (size_t i = 0; i < bytes; ++i) owned_.weights[offset + i] = static_cast<std::byte>(random_());
    plan.constants.push_back({"weights " + std::to_string(plan.constants.size()), offset, bytes, {}});
    return add_tensor({"w",
                       DType::i8,
                       {static_cast<int64_t>(bytes)},
                       {},
                       StorageKind::constant,
                       static_cast<uint32_t>(plan.constants.size() - 1),
                       0});
  }

  // Either kind of kernel, or what the host does.
  Work make_work(Step& s) {
    if (s.inputs.size() == 1) return Copy();
    if (pick(4) == 0) {
      s.op = "relu";
      s.attributes = "alpha=0.5";
      return Evaluation();
    }
    if (pick(8) == 0) {
      s.op = "plugin";
      s.attributes = "{name=\"p\"}";
      return PluginCall();
    }
    HostKernel host{"conv", {}, ""};
    for (uint32_t p = pick(5); p > 0; --p) host.params.push_back(static_cast<int64_t>(random_()) - 1000);
    if (pick(2) == 0) host.program = "in=2; r2=add r0 r1; out r2";
    return host;
  }

  void describe(Step& s) {
    s.name = "step" + std::to_string(owned_.plan.steps.size());
    s.origin = {s.name, "Conv_" + std::to_string(pick(9))};
    s.tactic = "mb=4 nb=16";
    s.milliseconds = static_cast<float>(pick(100)) / 8;
  }

  void add_step(TensorId from, TensorId skip, TensorId to) {
    Step s;
    s.inputs = {from};
    if (skip != kNoTensor || weight_bytes_ > 0 || pick(8) > 0) s.inputs.push_back(skip);
    if (weight_bytes_ > 0) s.inputs.push_back(add_constant(weight_bytes_));
    s.outputs = {to};
    s.work = make_work(s);
    describe(s);
    owned_.plan.steps.push_back(std::move(s));
  }

  // Steps from one tensor to another, which may read a third from outside.
  Body add_body(TensorId from, TensorId outer, TensorId to, size_t depth) {
    const size_t first = owned_.plan.steps.size();
    TensorId current = from;
    for (uint32_t more = pick(2); more > 0; --more) {
      const TensorId next = add_buffer();
      add_step(current, pick(2) == 0 ? outer : kNoTensor, next);
      current = next;
    }
    depth < 3 && pick(3) == 0 ? add_block(current, to, depth + 1) : add_step(current, outer, to);
    return {static_cast<uint32_t>(owned_.plan.steps.size() - first), {}, {to}};
  }

  void add_block(TensorId from, TensorId to, size_t depth) {
    const size_t at = owned_.plan.steps.size();
    Step s;
    describe(s);
    owned_.plan.steps.emplace_back();
    Block block;
    block.kind = static_cast<BlockKind>(1 + pick(3));
    if (block.kind == BlockKind::loop) make_loop(from, to, depth, s, block);
    if (block.kind == BlockKind::branch) {
      s.inputs = {add_constant_scalar(DType::boolean)};
      s.outputs = {to};
      block.bodies.push_back(add_body(from, from, to, depth));
      const TensorId other = add_buffer();
      block.bodies.push_back(add_body(from, from, other, depth));
    }
    if (block.kind == BlockKind::call) {
      s.inputs = {from};
      s.outputs = {to};
      const TensorId param = add_buffer(), result = pick(2) == 0 ? to : add_buffer();
      block.bodies.push_back(add_body(param, from, result, depth));
      block.bodies[0].params = {param};
    }
    s.work = std::move(block);
    owned_.plan.steps[at] = std::move(s);
  }

  void make_loop(TensorId from, TensorId to, size_t depth, Step& s, Block& block) {
    const bool counts = pick(3) > 0, asks = pick(2) == 0, scans = !counts || pick(2) == 0;
    const TensorId param = add_buffer(), result = add_buffer(), round = add_scalar("round", DType::i64);
    const TensorId condition = add_scalar("condition", DType::boolean), slice = add_scalar("slice", DType::i8);
    s.inputs = {counts ? add_constant_scalar(DType::i64) : kNoTensor,
                asks ? add_constant_scalar(DType::boolean) : kNoTensor, from};
    s.outputs = {to};
    block.carried = 1;
    if (counts && pick(3) == 0) {
      s.inputs[0] = kNoTensor;
      block.trips = {batch() + 1};
    }
    block.bodies = {add_body(param, from, result, depth)};
    Body& body = block.bodies[0];
    body.params = {pick(2) == 0 ? round : kNoTensor, asks ? condition : kNoTensor, param};
    body.results = {asks ? condition : kNoTensor, result};
    if (!scans) return;
    block.scanned = {{0, pick(2) == 0}};
    s.inputs.push_back(add_constant(16));
    body.params.push_back(slice);
    block.stacked = {{0, pick(2) == 0}};
    s.outputs.push_back(add_dynamic(ValueKind::tensor));
    body.results.push_back(slice);
  }

  void use(TensorId id, uint32_t step) {
    if (id == kNoTensor || owned_.plan.tensors[id].storage != StorageKind::arena) return;
    Buffer& buffer = owned_.plan.buffers[owned_.plan.tensors[id].index];
    buffer.first = std::min(buffer.first, step);
    buffer.last = std::max(buffer.last, step);
  }

  // What a block and its bodies take and leave lives as long as the block runs.
  void close_lifetimes() {
    const Plan& plan = owned_.plan;
    const std::vector<StepPlace> places = *find_places(plan.steps);
    for (uint32_t i = 0; i < plan.steps.size(); ++i) {
      const Step& step = plan.steps[i];
      const auto use_all = [&](const std::vector<TensorId>& ids) {
        for (const TensorId id : ids) use(id, i), use(id, places[i].end - 1);
      };
      use_all(step.inputs);
      use_all(step.outputs);
      const auto* block = std::get_if<Block>(&step.work);
      if (!block) continue;
      for (const Body& body : block->bodies) use_all(body.params), use_all(body.results);
    }
    for (Buffer& buffer : owned_.plan.buffers) {  // that nothing uses
      buffer.first = std::min(buffer.first, static_cast<uint32_t>(plan.steps.size() - 1));
      buffer.last = std::max(buffer.last, buffer.first);
    }
  }

  void add_profiles() {
    for (int64_t i = 0; i <= pick(2); ++i) {
      const int64_t low = 1 + pick(4);
      owned_.plan.profiles.push_back({{{low, low + 1, low + 1 + pick(8)}, {16, 224, 1024 + i}, {0, 1000, 1000}}});
    }
  }

  // Sizes are multiples of 8, as those of object files are.
  void add_modules(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      CodeModule& module = owned_.plan.codes.emplace_back();
      module.images = {{CodeForm::binary, "cuda-sm_90", {}}};
      if (pick(2) == 0) module.images.push_back({CodeForm::binary, "cuda-sm_80", {}});
      if (pick(2) == 0) module.images.push_back({CodeForm::assembly, "cuda-sm_80", {}});
      if (pick(2) == 0) module.images.push_back({CodeForm::source, "cuda", {}});
      for (CodeImage& image : module.images) {
        std::vector<std::byte>& code = owned_.codes.emplace_back(8 * (1 + pick(20)));
        for (std::byte& b : code) b = static_cast<std::byte>(random_());
        image.bytes = code;
      }
    }
    owned_.plan.is_code_deflated = count % 2 == 1;
    for (const CodeModule& module : owned_.plan.codes)  // some text
      owned_.plan.headers.push_back({fmt::format("{}.cuh", owned_.plan.headers.size()), module.images[0].bytes});
  }

  // The first step that may launch does.
  void add_launches(size_t modules) {
    add_modules(modules);
    bool is_first = true;
    for (Step& step : owned_.plan.steps) {
      if (!step.is<HostKernel>() || (!is_first && pick(2) == 0)) continue;
      is_first = false;
      DeviceLaunches device{"conv", std::string(step.program()), {}, {}};
      device.workspace = pick(2) == 0 ? Expr(0) : 4 * batch() * width() + 256;
      for (uint32_t i = 0; i <= pick(3); ++i) device.launches.push_back(make_launch(step));
      step.work = std::move(device);
      if (step.inputs.size() > 2 && pick(2) == 0) add_count(step);
    }
  }

  // Of the first launches outside of blocks. What they touch lives as long as it runs.
  void add_section() {
    std::vector<Step>& steps = owned_.plan.steps;
    const std::vector<StepPlace> places = *find_places(steps);
    const auto fits = [&](uint32_t i) {
      return i < steps.size() && steps[i].is<DeviceLaunches>() && steps[i].counts.empty();
    };
    uint32_t first = 0;
    while (first < steps.size() && !fits(first)) first = places[first].end;
    uint32_t end = first;
    while (fits(end)) ++end;
    if (first == end) return;
    for (uint32_t i = first; i < end; ++i) {
      steps[i].stream = 1 + pick(2);
      for (const auto* ids : {&steps[i].inputs, &steps[i].outputs})
        for (const TensorId id : *ids) use(id, first), use(id, end - 1);
    }
    owned_.plan.sections = {{first, end}};
  }

  // The first bytes of the step's weights, as a size that the device has computed.
  void add_count(Step& step) {
    TensorDesc list = owned_.plan.tensors[step.inputs[2]];
    if (owned_.plan.constants[list.index].bytes < sizeof(int64_t)) return;
    list.dtype = DType::i64;
    list.dims = {1};
    step.counts = {{2, static_cast<uint32_t>(step.inputs.size()), Expr(0)}};
    step.inputs.push_back(add_tensor(std::move(list)));
  }

  Launch make_launch(const Step& step) {
    Launch launch;
    launch.code = pick(static_cast<uint32_t>(owned_.plan.codes.size()));
    launch.entry = "kernel" + std::to_string(pick(5));
    launch.grid = {ceildiv(batch() * width(), 128), Expr(3), Expr(1 + pick(2))};
    launch.block = 32 * (1 + pick(8));
    launch.shared_bytes = 1024 * pick(100);
    launch.cluster = 1 + pick(2);
    launch.overlaps = pick(2) == 0;
    if (launch.entry == "kernel4") launch.library = "cublaslt", launch.code = 0;
    launch.args = {{LaunchArg::output, pick(static_cast<uint32_t>(step.outputs.size())), 0},
                   {LaunchArg::workspace, 0, 4 * width()},
                   {LaunchArg::number, 0, batch() * width()},
                   {LaunchArg::number, 0, static_cast<int64_t>(random_()) - 1000}};
    for (uint32_t i = 0; i < step.inputs.size(); ++i) launch.args.push_back({LaunchArg::input, i, 0});
    if (launch.library.empty() && !step.inputs.empty() && pick(2) == 0) {
      launch.maps = {{pick(static_cast<uint32_t>(step.inputs.size())),
                      DType::f32,
                      pick(2) == 0,
                      {width(), batch()},
                      {4 * width()},
                      {32, 1 + pick(256)},
                      {}}};
      if (pick(2) == 0) {
        TensorMap& map = launch.maps[0];
        map.dims = {width(), width(), batch(), batch()}, map.strides = {4 * width(), width(), 4 * width()};
        map.windows = {-static_cast<int64_t>(pick(128)), -1, 1 - static_cast<int64_t>(pick(128)), 2, 1 + pick(8), 1};
      }
      launch.args.insert(launch.args.begin(), {LaunchArg::tensor_map, 0, {}});
    }
    return launch;
  }

  std::mt19937 random_;
  size_t weight_bytes_ = 0;  // of each step's own
  OwnedPlan owned_;
};

}  // namespace lathe::plan
