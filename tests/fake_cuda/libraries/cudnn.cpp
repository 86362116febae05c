// SPDX-License-Identifier: Apache-2.0
// A stand-in for cuDNN's graph interface; cudnn_state.h says what its engines do.
#include <algorithm>
#include <cstring>

#include "fake_cuda/libraries/cudnn_state.h"

// The functions, with the types that the library under test calls them by.
namespace lathe::cuda {
#define LATHE_CUDNN_FUNCTION(result, name, parameters) \
  extern "C" __attribute__((visibility("default"))) result name parameters;
#include "device/cuda/cudnn.def"
#undef LATHE_CUDNN_FUNCTION
}  // namespace lathe::cuda

namespace fake_library {
const size_t kFirstVersion = 91900, kMostOffered = 3;
}

namespace fake_cudnn {
namespace {

constexpr int kKnob = 3;
constexpr int kGraphOfResult = -1;  // our own attributes of what the library fills in
constexpr int kKnobOfResult = -2;

struct Handle {
  CUstream stream = nullptr;
};

Descriptor& as(cudnnBackendDescriptor_t descriptor) { return *static_cast<Descriptor*>(descriptor); }

size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    case CUDNN_TYPE_FLOAT:
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_KNOB_TYPE:
    case CUDNN_TYPE_NUMERICAL_NOTE:
    case CUDNN_TYPE_POINTWISE_MODE:
      return 4;
    default:
      return 8;
  }
}

void set_engine(Descriptor& engine, const Descriptor* graph, int64_t index) {
  engine.numbers[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {reinterpret_cast<int64_t>(graph)};
  engine.numbers[CUDNN_ATTR_ENGINE_GLOBAL_INDEX] = {index};
  engine.finalized = true;
}

// Engine and knob of a configuration, whoever has made it.
std::pair<int64_t, int64_t> choice_of(const Descriptor& config) {
  if (config.numbers.contains(kKnobOfResult))
    return {config.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX), config.number(kKnobOfResult)};
  int64_t knob = 0;
  for (const int64_t choice : config.list(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES))
    knob = reinterpret_cast<const Descriptor*>(choice)->number(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
  const Descriptor* engine = config.descriptor(CUDNN_ATTR_ENGINECFG_ENGINE);
  return {engine ? engine->number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX) : -1, knob};
}

const Descriptor* graph_of(const Descriptor& config) {
  if (config.numbers.contains(kGraphOfResult)) return config.descriptor(kGraphOfResult);
  const Descriptor* engine = config.descriptor(CUDNN_ATTR_ENGINECFG_ENGINE);
  return engine ? engine->descriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH) : nullptr;
}

// What a heuristic answers: pairs of engine and knob.
std::vector<std::pair<int64_t, int64_t>> results_of(const Descriptor& heuristic) {
  Graph graph;
  const Descriptor* asked = heuristic.descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  std::vector<std::pair<int64_t, int64_t>> results;
  if (!asked || read_graph(*asked, graph) != CUDNN_STATUS_SUCCESS) return results;
  if (heuristic.number(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK)
    results = {{0, 0}};
  else
    results = {{2, 0}, {1, 1}, {1, 0}};
  results.resize(std::min(results.size(), fake_library::state().offered));
  std::erase_if(results, [&](const auto& each) { return !accepts(graph, each.first); });
  return results;
}

std::vector<int64_t> notes_of(const Descriptor& engine) {
  const int64_t index = engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  if (index == 1) return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  return index == 2 ? std::vector<int64_t>{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC} : std::vector<int64_t>{};
}

// The library fills in descriptors that its caller has made.
cudnnStatus_t fill(const Descriptor& from, int name, int64_t wanted, int64_t* count, Descriptor** into) {
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    const auto results = results_of(from);
    *count = static_cast<int64_t>(results.size());
    for (int64_t i = 0; i < std::min(wanted, *count); ++i) {
      into[i]->numbers[kGraphOfResult] = {from.number(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)};
      into[i]->numbers[CUDNN_ATTR_ENGINE_GLOBAL_INDEX] = {results[static_cast<size_t>(i)].first};
      into[i]->numbers[kKnobOfResult] = {results[static_cast<size_t>(i)].second};
      into[i]->finalized = true;
    }
  } else if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
    *count = 1;
    set_engine(*into[0], graph_of(from), choice_of(from).first);
  } else if (name == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES) {
    *count = choice_of(from).first == 1 ? 1 : 0;
    if (*count == 0 || wanted == 0) return CUDNN_STATUS_SUCCESS;
    into[0]->numbers[CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE] = {kKnob};
    into[0]->numbers[CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE] = {choice_of(from).second};
    into[0]->finalized = true;
  } else {
    return CUDNN_STATUS_BAD_PARAM;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_plan(Descriptor& plan) {
  const Descriptor* config = plan.descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  Graph graph;
  if (!config || !config->finalized || plan.number(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) == 0)
    return CUDNN_STATUS_BAD_PARAM;
  if (const cudnnStatus_t status = read_graph(*graph_of(*config), graph); status != CUDNN_STATUS_SUCCESS) return status;
  const auto [engine, knob] = choice_of(*config);
  if (!accepts(graph, engine)) return CUDNN_STATUS_NOT_SUPPORTED;
  plan.numbers[CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE] = {workspace_of(engine, knob)};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize(Descriptor& descriptor) {
  Graph graph;
  switch (descriptor.type) {
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return read_graph(descriptor, graph);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return finalize_plan(descriptor);
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return descriptor.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX) <= 2 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return descriptor.list(CUDNN_ATTR_TENSOR_DIMENSIONS).empty() ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_SUCCESS;
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

}  // namespace
}  // namespace fake_cudnn

namespace lathe::cuda {

using fake_cudnn::Descriptor;
using fake_library::state;

// Returns the failure that was asked for.
#define FAKE_ENTER() \
  if (const int s = fake_library::enter(__func__)) return static_cast<cudnnStatus_t>(s)

extern "C" {

size_t cudnnGetVersion() { return state().version; }

const char* cudnnGetErrorString(cudnnStatus_t) { return "CUDNN_STATUS_SOMETHING"; }

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  FAKE_ENTER();
  ++state().live;
  *handle = reinterpret_cast<cudnnHandle_t>(new fake_cudnn::Handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  --state().live;
  delete reinterpret_cast<fake_cudnn::Handle*>(handle);
  return static_cast<cudnnStatus_t>(fake_library::enter(__func__));
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream stream) {
  FAKE_ENTER();
  reinterpret_cast<fake_cudnn::Handle*>(handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  FAKE_ENTER();
  ++state().live;
  auto* made = new Descriptor;
  made->type = type;
  *descriptor = made;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  --state().live;
  delete static_cast<Descriptor*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  FAKE_ENTER();
  Descriptor& to = fake_cudnn::as(descriptor);
  if (to.finalized) return CUDNN_STATUS_BAD_PARAM;
  to.numbers.erase(name);
  to.reals.erase(name);
  for (int64_t i = 0; i < count; ++i) {
    const size_t size = fake_cudnn::size_of(type);
    const auto* at = static_cast<const std::byte*>(values) + static_cast<size_t>(i) * size;
    if (type == CUDNN_TYPE_DOUBLE || type == CUDNN_TYPE_FLOAT) {
      to.reals[name].push_back(type == CUDNN_TYPE_FLOAT ? *reinterpret_cast<const float*>(at)
                                                        : *reinterpret_cast<const double*>(at));
      continue;
    }
    int64_t value = 0;
    std::memcpy(&value, at, size);
    to.numbers[name].push_back(value);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t wanted, int64_t* count, void* values) {
  FAKE_ENTER();
  const Descriptor& from = fake_cudnn::as(descriptor);
  if (!from.finalized) return CUDNN_STATUS_BAD_PARAM;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    return fake_cudnn::fill(from, name, wanted, count, static_cast<Descriptor**>(values));
  const std::vector<int64_t> found =
      name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE ? fake_cudnn::notes_of(from) : from.list(name);
  *count = static_cast<int64_t>(found.size());
  const size_t size = fake_cudnn::size_of(type);
  for (int64_t i = 0; i < std::min(wanted, *count); ++i)
    std::memcpy(static_cast<std::byte*>(values) + static_cast<size_t>(i) * size, &found[static_cast<size_t>(i)], size);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  FAKE_ENTER();
  Descriptor& made = fake_cudnn::as(descriptor);
  const cudnnStatus_t status = fake_cudnn::finalize(made);
  made.finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  FAKE_ENTER();
  const Descriptor &chosen = fake_cudnn::as(plan), &given = fake_cudnn::as(pack);
  if (!chosen.finalized || !given.finalized) return CUDNN_STATUS_BAD_PARAM;
  fake_cudnn::Graph graph;
  fake_cudnn::read_graph(*fake_cudnn::graph_of(*chosen.descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)), graph);
  const auto needed = static_cast<size_t>(chosen.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  auto* workspace = reinterpret_cast<void*>(given.number(CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
  if (needed > 0 && !fake_library::holds(workspace, needed)) return CUDNN_STATUS_BAD_PARAM;
  if (needed > 0) std::memset(workspace, 0xff, needed);
  std::map<int64_t, void*> addresses;
  const auto& names = given.list(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  for (size_t i = 0; i < names.size(); ++i)
    addresses[names[i]] = reinterpret_cast<void*>(given.list(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)[i]);
  static const int kind = 0;
  const int result = fake_library::submit(reinterpret_cast<fake_cudnn::Handle*>(handle)->stream, &kind,
                                          [graph, addresses] { fake_cudnn::run(graph, addresses); });
  return result == 0 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
}  // namespace lathe::cuda
