// SPDX-License-Identifier: Apache-2.0
// Plans with control flow, written by hand: steps are plain evaluations unless the test says otherwise.
#pragma once

#include "device/cuda/cuda_device.h"
#include "device/interpreter_device.h"
#include "lowering/engine_fixture.h"

namespace lathe {

class PlanMaker {
 public:
  using Id = plan::TensorId;
  static constexpr Id kNone = plan::kNoTensor;

  plan::Plan plan;

  PlanMaker() { plan.profiles.emplace_back(); }

  // Inputs come before outputs.
  Id input(const std::string& name, DType dtype, Shape dims) { return binding(name, true, dtype, std::move(dims)); }
  Id output(const std::string& name, DType dtype, Shape dims) { return binding(name, false, dtype, std::move(dims)); }

  // A tensor of the arena.
  Id buffer(const std::string& name, DType dtype, Shape dims) {
    const Expr bytes = volume(dims) * static_cast<int64_t>(size_of(dtype));
    plan.buffers.push_back({bytes, 0, 0});
    return tensor(name, dtype, std::move(dims), plan::StorageKind::arena, plan.buffers.size() - 1);
  }
  Id slot(const std::string& name, DType dtype, Shape dims) {
    return tensor(name, dtype, std::move(dims), plan::StorageKind::dynamic, plan.dynamic_slots++);
  }
  template <class T>
  Id constant(DType dtype, Dims dims, std::vector<T> values) {
    const size_t at = weights_.size(), bytes = values.size() * sizeof(T);
    weights_.resize(at + (bytes + 63) / 64 * 64);
    std::memcpy(weights_.data() + at, values.data(), bytes);
    plan.constants.push_back({"constant " + std::to_string(plan.constants.size()), at, bytes, {}});
    return tensor(plan.constants.back().name, dtype, to_shape(dims), plan::StorageKind::constant,
                  plan.constants.size() - 1);
  }
  Id number(int64_t value) { return constant<int64_t>(DType::i64, {}, {value}); }
  Id truth(bool value) { return constant<uint8_t>(DType::boolean, {}, {value}); }
  Id floats(Dims dims, std::vector<float> values) { return constant<float>(DType::f32, std::move(dims), values); }

  // A size that running tells, and one that is dimension `d` of an input.
  Expr computed(const std::string& name) { return symbol({name, SymbolSource::computed, 0, 0, {0, 1 << 20}}); }
  Expr dimension(const std::string& name, uint32_t input, uint32_t d) {
    return symbol({name, SymbolSource::input_dim, input, d, {0, 1 << 20}});
  }

  size_t step(plan::Work work, const std::string& name, std::vector<Id> inputs, std::vector<Id> outputs) {
    plan::Step& step = plan.steps.emplace_back();
    step.work = std::move(work);
    step.name = name;
    step.inputs = std::move(inputs);
    step.outputs = std::move(outputs);
    return plan.steps.size() - 1;
  }
  void evaluate(const std::string& op, const std::string& attributes, std::vector<Id> inputs, std::vector<Id> outputs) {
    plan::Step& made = plan.steps[step(plan::Evaluation(), op, std::move(inputs), std::move(outputs))];
    made.op = op;
    made.attributes = "{" + attributes + "}";
  }
  void elementwise(const std::string& op, Id a, Id b, Id to) { evaluate("elementwise", "op=" + op, {a, b}, {to}); }
  void kernel(const std::string& name, const std::string& program, std::vector<Id> inputs, std::vector<Id> outputs) {
    step(plan::HostKernel{name, {}, program}, name, std::move(inputs), std::move(outputs));
  }
  void copy(Id from, Id to) { step(plan::Copy(), "copy", {from}, {to}); }

  // A block; its bodies follow: begin_body(), steps, end_body().
  size_t block(plan::BlockKind kind, std::vector<Id> inputs, std::vector<Id> outputs) {
    plan::Block block;
    block.kind = kind;
    return step(std::move(block), "block" + std::to_string(plan.steps.size()), std::move(inputs), std::move(outputs));
  }
  size_t loop(uint32_t carried, std::vector<Id> inputs, std::vector<Id> outputs) {
    const size_t at = block(plan::BlockKind::loop, std::move(inputs), std::move(outputs));
    get(at).carried = carried;
    return at;
  }
  plan::Block& get(size_t at) { return std::get<plan::Block>(plan.steps[at].work); }
  void begin_body(size_t at, std::vector<Id> params) {
    get(at).bodies.push_back({static_cast<uint32_t>(plan.steps.size()), std::move(params), {}});
  }
  void end_body(size_t at, std::vector<Id> results) {
    plan::Body& body = get(at).bodies.back();
    body.steps = static_cast<uint32_t>(plan.steps.size()) - body.steps;
    body.results = std::move(results);
  }

  Result<std::shared_ptr<const Engine>> load(std::shared_ptr<Device> device) {
    plan.target = device->target();
    plan.weights = weights_;
    for (plan::Constant& c : plan.constants) c.digest = digest_of(plan.weights.subspan(c.offset, c.bytes));
    find_lifetimes();
    LATHE_ASSIGN(std::vector<std::byte> bytes, plan::write_plan(plan));
    auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
    return Engine::load(*owner, owner, {std::move(device), {}});
  }
  std::unique_ptr<Context> context(std::shared_ptr<Device> device) {
    const auto engine = load(std::move(device));
    EXPECT_TRUE(engine) << engine.error().to_string();
    return engine ? *Context::create(*engine) : nullptr;
  }

 private:
  void use(Id id, size_t step) {
    if (id == kNone || plan.tensors[id].storage != plan::StorageKind::arena) return;
    plan::Buffer& buffer = plan.buffers[plan.tensors[id].index];
    buffer.first = std::min(buffer.first, static_cast<uint32_t>(step));
    buffer.last = std::max(buffer.last, static_cast<uint32_t>(step));
  }
  // As short as they may be: what a block and its bodies take and leave lives as long as the block runs, and so does
  // what a loop finds there.
  void find_lifetimes() {
    for (plan::Buffer& buffer : plan.buffers) buffer.first = UINT32_MAX, buffer.last = 0;
    const std::vector<plan::StepPlace> places = *plan::find_places(plan.steps);
    const auto use_all = [&](const std::vector<Id>& ids, size_t first, size_t last) {
      for (const Id id : ids) use(id, first), use(id, last);
    };
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      for (const auto* ids : {&plan.steps[i].inputs, &plan.steps[i].outputs}) use_all(*ids, i, places[i].end - 1);
      const auto* block = std::get_if<plan::Block>(&plan.steps[i].work);
      for (const plan::Body& body : block ? block->bodies : std::vector<plan::Body>())
        for (const auto* ids : {&body.params, &body.results}) use_all(*ids, i, places[i].end - 1);
    }
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      const auto* block = std::get_if<plan::Block>(&plan.steps[i].work);
      if (!block || block->kind != plan::BlockKind::loop) continue;
      for (size_t k = i + 1; k < places[i].end; ++k)
        for (const auto* ids : {&plan.steps[k].inputs, &plan.steps[k].outputs})
          for (const Id id : *ids)
            if (id != kNone && plan.tensors[id].storage == plan::StorageKind::arena &&
                plan.buffers[plan.tensors[id].index].first < i)
              use(id, places[i].end - 1);
    }
    for (plan::Buffer& buffer : plan.buffers) buffer.first = std::min(buffer.first, buffer.last);  // those without use
  }
  Id tensor(const std::string& name, DType dtype, Shape dims, plan::StorageKind storage, size_t index) {
    plan.tensors.push_back({name, dtype, std::move(dims), {}, storage, static_cast<uint32_t>(index), 0});
    return static_cast<Id>(plan.tensors.size() - 1);
  }
  Id binding(const std::string& name, bool is_input, DType dtype, Shape dims) {
    const Id id = tensor(name, dtype, std::move(dims), plan::StorageKind::binding, plan.bindings.size());
    plan.bindings.push_back({name, is_input, id, false, {}});
    return id;
  }
  Expr symbol(Symbol symbol) {
    plan.symbols.push_back(std::move(symbol));
    plan.profiles[0].symbols.push_back({0, 4, 1 << 20});
    return Expr::symbol(static_cast<SymbolId>(plan.symbols.size() - 1));
  }

  std::vector<std::byte> weights_;
};

// The GPU that LATHE_TEST_DEVICE names; null without one.
inline std::shared_ptr<Device> test_gpu() { return std::getenv("LATHE_TEST_DEVICE") ? *cuda::open_device(0) : nullptr; }

inline std::vector<std::shared_ptr<Device>> devices() {
  std::vector<std::shared_ptr<Device>> all = {test_device(), std::make_shared<interpreter::InterpretingDevice>()};
  if (const std::shared_ptr<Device> gpu = test_gpu()) all.push_back(gpu);
  return all;
}

// Runs the plan twice in one context of each device.
inline void expect_outputs(PlanMaker& maker, const std::vector<Tensor>& inputs, const std::vector<Tensor>& wanted) {
  for (const std::shared_ptr<Device>& device : devices()) {
    SCOPED_TRACE(device->name());
    const std::unique_ptr<Context> context = maker.context(device);
    ASSERT_TRUE(context);
    for (int run = 0; run < 2; ++run) {
      const std::vector<Tensor> outputs = run_engine(*context, inputs);
      ASSERT_EQ(outputs.size(), wanted.size());
      for (size_t i = 0; i < outputs.size(); ++i) expect_close(outputs[i], wanted[i], 0);
    }
  }
}

inline Error error_of(PlanMaker& maker, const std::vector<Tensor>& inputs) {
  const std::unique_ptr<Context> context = maker.context(test_device());
  if (!context) return {};
  const Result<std::vector<Tensor>> outputs = try_engine(*context, inputs);
  EXPECT_FALSE(outputs);
  return outputs ? Error() : outputs.error();
}

template <class T>
inline Tensor tensor(DType dtype, Dims dims, const std::vector<T>& values) {
  Tensor made = *Tensor::allocate(dtype, std::move(dims));
  std::copy(values.begin(), values.end(), static_cast<T*>(made.mutable_data()));
  return made;
}
inline Tensor floats(Dims dims, const std::vector<float>& values) {
  return tensor(DType::f32, std::move(dims), values);
}
inline Tensor floats(const std::vector<float>& values) { return floats({static_cast<int64_t>(values.size())}, values); }
inline Tensor number(int64_t value) { return tensor<int64_t>(DType::i64, {}, {value}); }
inline Tensor truth(bool value) { return tensor<uint8_t>(DType::boolean, {}, {value}); }

}  // namespace lathe
