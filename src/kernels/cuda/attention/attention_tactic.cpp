// SPDX-License-Identifier: Apache-2.0
// Attention: on tensor cores for 8-bit and 16-bit floats, and f32 as TF32, in aligned rows; else in f32.
#include <algorithm>
#include <cmath>

#include "base/divide.h"
#include "kernels/cuda/attention/decode_tactic.h"
#include "kernels/cuda/attention/inlined_tactic.h"
#include "kernels/cuda/attention/logits.h"
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/match.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kMaxSize = 256;  // of a head

int64_t head_size(const Problem& problem, size_t input) {
  return problem.inputs[input].dims[3].as_constant().value_or(0);
}

int64_t padded(int64_t size) { return round_up(size, 16); }

struct Heads {
  int64_t size, value_size;  // elements of one
  DType dtype;

  int64_t padded_size() const { return round_up(size, dtype == DType::f8e4m3fn ? 32 : 16); }
};

// The choice.
struct Blocking {
  bool tensor_cores = true;
  int64_t warps = 4;
  int64_t keys = 64;    // of a tile, on tensor cores
  int64_t queries = 4;  // of a warp, in f32
  int64_t splits = 1;   // blocks of a cluster that share keys, on tensor cores

  int64_t rows() const { return tensor_cores ? warps * 16 : warps * queries; }
  int64_t shared_bytes(const Heads& heads) const {
    if (!tensor_cores) return 4 * (rows() * heads.size + 32 * (heads.size + 1) + 32 * heads.value_size);
    const auto bytes = static_cast<int64_t>(size_of(heads.dtype)), pad = 16 / bytes;
    const int64_t pitch = heads.padded_size() + pad, value_pitch = padded(heads.value_size) + pad;
    const int64_t tiles = bytes * (rows() * pitch + 2 * keys * (pitch + value_pitch));
    const int64_t sums = padded(heads.value_size) / 2 + 4;
    return splits == 1 ? tiles : std::max(tiles, 4 * warps * 32 * sums);
  }
};

// Whether tensor cores can take it.
bool fits_tensor_cores(const Problem& problem) {
  const DType dtype = problem.inputs[0].dtype;
  const bool is_float8 = dtype == DType::f8e4m3fn && problem.target.limits.float8;
  if (!is_float8 && !is_matrix_half(problem.target, dtype) && !(dtype == DType::f32 && problem.tf32)) return false;
  const auto vector = static_cast<int64_t>(16 / size_of(dtype));
  for (size_t i = 0; i < 3; ++i) {
    const Operand operand = problem.inputs[i].pages ? pool_of(problem.inputs[i]) : problem.inputs[i];
    if (operand.dtype != dtype || head_size(problem, i) % vector != 0 || unit_dim(operand) != 3 ||
        vector_width(operand) < vector)
      return false;
  }
  return true;
}

// Keys or values that are levels, of which a program makes floats.
bool is_of_levels(const Problem& problem, size_t i) {
  const Operand& input = problem.inputs[i];
  return i > 0 && i < 3 && input.is_computed() && (input.pages || input.dtype != problem.inputs[0].dtype);
}

// Whether tensor cores can take few queries: their kernel makes factors of what it reads, levels, too.
bool fits_few(const Problem& problem) {
  const DType dtype = problem.inputs[0].dtype;
  if (dtype == DType::f8e4m3fn) return false;
  Problem factors = problem;
  for (const size_t i : {1, 2}) {
    if (is_of_levels(problem, i)) factors.inputs[i].dtype = dtype;
  }
  return fits_tensor_cores(factors);
}

constexpr std::string_view kNames[] = {"Q", "K", "V"};

// Queries, keys or values, which become inputs of the emission; gives the objects that are declared first.
std::string declare_factor(Source& source, const Problem& problem, size_t i, Emission& emission) {
  if (const std::optional<size_t> step = inlined_at(problem, i))
    return declare_inlined(source, problem, *step, kNames[i], emission);
  const bool paged = problem.inputs[i].pages.has_value();
  source.input(emission.inputs.size(), paged ? pool_of(problem.inputs[i]) : problem.inputs[i],
               fmt::format("{}{}", kNames[i], paged ? "Pool" : ""));
  emission.inputs.push_back({StepInput::input, i});
  return "";
}

// The program before one of the three, whose operands become inputs of the emission; gives what the kernel reads.
std::string declare_program(Source& source, const Problem& problem, size_t input, Emission& emission) {
  const std::string_view name = kNames[input];
  const Operand& x = problem.inputs[input];
  if (!x.is_computed()) return fmt::format("{}_", name);
  std::vector<Operand> views = {x};
  for (const Operand& operand : x.program_operands()) views.push_back(broadcast(operand, x));
  source.prologue(x.program, views, emission.inputs.size(), name);
  add_prologue_inputs(problem, input, emission, x.pages ? 1 : 0);
  return x.pages ? fmt::format("Computed<Paged<{0}Pool, {0}Table>, {0}Prologue>{{{0}_, {0}Prologue_}}", name)
                 : fmt::format("Computed<{0}, {0}Prologue>{{{0}_, {0}Prologue_}}", name);
}

// The tables of blocks that keys and values lie in, which become inputs of the emission; gives the objects of what the
// kernel reads so.
std::string declare_tables(Source& source, const Problem& problem, Emission& emission) {
  std::string objects;
  for (const size_t i : {1, 2}) {
    if (!problem.inputs[i].pages) continue;
    source.input(emission.inputs.size(), problem.inputs[i].operands[0], fmt::format("{}Table", kNames[i]));
    emission.inputs.push_back({.kind = StepInput::input_operand, .index = i});
    objects += fmt::format("const Paged<{0}Pool, {0}Table> {0}_{{{0}Pool_, {0}Table_}}; ", kNames[i]);
  }
  return objects;
}

void add(const Problem& problem, const Heads& heads, const Blocking& shape, std::vector<Config>& configs) {
  const Target& target = problem.target;
  const int64_t size = padded(std::max(heads.size, heads.value_size));
  const int64_t shared_bytes = shape.shared_bytes(heads);
  if (shared_bytes > target.limits.shared_bytes) return;
  const int64_t most = heads.dtype == DType::f32 ? 64 * 64 : 64 * 128;  // that registers hold
  if (shape.tensor_cores && shape.keys * size > most && shape.keys > 32) return;
  const Dims& q = problem.inputs[0].opt_dims;
  const auto count = static_cast<double>(q[0] * q[1]);
  const double seen = seen_tiles(problem, shape.rows(), shape.keys).mean;
  const auto splits = static_cast<double>(shape.splits);
  const double blocks = splits * count * std::ceil(static_cast<double>(q[2]) / static_cast<double>(shape.rows()));
  const bool is_worth_splitting = blocks / splits < target.cores && seen >= 2 * splits;
  if (shape.splits > 1 && (shape.splits > target.limits.cluster || !is_worth_splitting)) return;
  // Of one block: operations in a clock, of which half are multiplications, and a fixed time for each tile.
  constexpr double kTileClocks = 850, kMergeClocks = 2500;
  const double tiles = std::ceil(seen / splits);
  const double flops = 4.0 * static_cast<double>(shape.rows() * shape.keys * size);
  // Instructions of one warp reach half of what Hopper's of four do (bench/results/2026-11-30-hoisted-cuda.md). Of
  // 8-bit floats what is beside the products takes longer than these.
  const double share = target.limits.warpgroups && heads.dtype != DType::f32 ? 0.5 : 1;
  const double products = heads.dtype == DType::f8e4m3fn ? target.products.matrix : target.matrix_products(heads.dtype);
  const double rate = shape.tensor_cores ? 2.01 * share * products * std::min(1.0, static_cast<double>(shape.warps) / 4)
                                         : 0.46 * target.products.f32;
  const double resident =
      std::floor(0.97 * static_cast<double>(target.limits.core_shared_bytes) / static_cast<double>(shared_bytes));
  const double waves = std::max(1.0, blocks / target.cores);
  const double clocks =
      tiles * (waves * flops / rate + kTileClocks * std::max(1.0, waves / std::max(1.0, std::min(resident, 4.0)))) +
      (shape.splits > 1 ? kMergeClocks : 0);
  const std::string cluster = shape.splits > 1 ? fmt::format(" cluster={}", shape.splits) : "";
  configs.push_back({.text = shape.tensor_cores
                                 ? fmt::format("{}x{} queries x keys{}", shape.rows(), shape.keys, cluster)
                                 : fmt::format("{} queries in f32", shape.rows()),
                     .predicted_us = target.launch_us + clocks / target.clock_mhz,
                     .choice = shape});
}

std::vector<Config> configs(const Problem& problem, const Heads& heads) {
  std::vector<Config> configs;
  if (!problem.inlined.empty()) {
    decode::add_configs(problem, configs);
    return best_first(std::move(configs));
  }
  if (!fits_tensor_cores(problem)) {
    for (const int64_t queries : {4, 1}) add(problem, heads, {false, 4, 32, queries}, configs);
  } else {
    for (const int64_t warps : {4, 8, 2, 1})
      for (const int64_t keys : {64, 128, 32})
        for (const int64_t splits : {1, 2, 4, 8}) add(problem, heads, {true, warps, keys, 0, splits}, configs);
  }
  configs = best_first(std::move(configs), 5);
  if (fits_few(problem)) decode::add_configs(problem, configs);
  return best_first(std::move(configs));
}

Result<Emission> emit(const Problem& problem, const Heads& heads, const Config& config) {
  const auto* few = std::any_cast<decode::Blocks>(&config.choice);
  if (!few && !problem.inlined.empty())
    return fail(ErrorCode::internal, "only the kernel of few queries does steps before it");
  const Blocking shape = few ? Blocking{} : config.as<Blocking>();
  Emission emission;
  Source source(few                  ? "attention/decode.cuh"
                : shape.tensor_cores ? "attention/attention.cuh"
                                     : "attention/attention_simt.cuh");
  std::string objects;
  for (size_t i = 0; i < 3; ++i) objects += declare_factor(source, problem, i, emission);
  objects += declare_tables(source, problem, emission);
  const std::string logits = declare_logits(source, problem, emission);
  source.output(0, problem.outputs[0], "Y");
  source.fusion(problem, emission.inputs.size());
  add_operand_inputs(problem, emission);
  std::string operands;
  for (size_t i = 0; i < 3; ++i) operands += declare_program(source, problem, i, emission) + ", ";
  if (few) {
    emission.launches.push_back(decode::launch(source, problem, *few, operands + "Y_, " + logits, objects));
    return emission;
  }
  const std::string kernel =
      shape.tensor_cores
          ? fmt::format("attend<{}, {}, {}, {}, {}>", heads.padded_size(), padded(heads.value_size), shape.warps,
                        shape.keys, shape.splits)
          : fmt::format("attend_simt<{}, {}, {}, {}>", heads.size, heads.value_size, shape.warps, shape.queries);
  const lathe::Shape& q = problem.inputs[0].dims;
  emission.launches.push_back(source.finish(fmt::format("{}{}({}Y_, {}, fusion_);", objects, kernel, operands, logits),
                                            {q[0] * q[1] * ceildiv(q[2], shape.rows()) * shape.splits, 1, 1},
                                            static_cast<uint32_t>(shape.warps * 32),
                                            static_cast<uint32_t>(shape.shared_bytes(heads))));
  if (shape.splits > 1) emission.launches.back().launch.cluster = static_cast<uint32_t>(shape.splits);
  return emission;
}

}  // namespace

Matched match_attention(const Problem& problem) {
  if (!problem.is(OpKind::attention)) return refuse("not an attention");
  const DType dtype = problem.inputs[0].dtype;
  const bool is_float8 = dtype == DType::f8e4m3fn;
  const Features supported{.mixed_factors = true,
                           .reassociated_inputs = 7,
                           .prologues = is_float8 ? 0u : 7u,
                           .pages = 6,
                           .float8 = true,
                           .inlined = true};
  if (auto reason = unsupported_feature(problem, supported)) return refuse(*std::move(reason));
  for (const size_t i : {1, 2})
    if (problem.inputs[i].dtype != dtype && !is_of_levels(problem, i)) return refuse("factors of two types");
  if (!is_short_float(dtype) && !is_float8) return refuse(fmt::format("its input is {}", name_of(dtype)));
  if (auto reason = refuse_doubles(problem)) return refuse(*std::move(reason));
  for (const size_t i : {0, 2}) {
    const int64_t size = head_size(problem, i);
    if (size == 0) return refuse("the size of a head is not known");
    if (size > kMaxSize) return refuse(fmt::format("heads of {} elements, {} are handled", size, kMaxSize));
  }
  if (auto reason = refuse_order(problem)) return refuse(*std::move(reason));
  if ((is_of_levels(problem, 1) || is_of_levels(problem, 2)) && !(fits_few(problem) && decode::takes(problem)))
    return refuse("levels, for many queries or rows that are not aligned");
  if (!problem.inlined.empty()) {
    if (!fits_tensor_cores(problem) || is_float8) return refuse("steps before it that only tensor cores' kernel does");
    if (auto reason = refuse_inlined(problem)) return refuse(*std::move(reason));
  }
  return match_form(problem, Heads{head_size(problem, 0), head_size(problem, 2), dtype}, configs, emit);
}

}  // namespace lathe::cuda
