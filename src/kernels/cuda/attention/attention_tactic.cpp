// SPDX-License-Identifier: Apache-2.0
// Attention: on tensor cores for 16-bit floats in aligned rows, else in f32.
#include <algorithm>
#include <cmath>

#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kMaxSize = 256;  // of a head

bool has_mask(const Problem& problem) { return problem.inputs.size() > 3 && !problem.inputs[3].omitted; }

int64_t head_size(const Problem& problem, size_t input) {
  return problem.inputs[input].dims[3].as_constant().value_or(0);
}

int64_t padded(int64_t size) { return (size + 15) / 16 * 16; }

// Config::values of the kernels.
struct Blocking {
  bool tensor_cores = true;
  int64_t warps = 4;
  int64_t keys = 64;    // of a tile, on tensor cores
  int64_t queries = 4;  // of a warp, in f32
  static Blocking of(const Config& config) {
    return {config.values[0] != 0, config.values[1], config.values[2], config.values[3]};
  }
  int64_t rows() const { return tensor_cores ? warps * 16 : warps * queries; }
  int64_t shared_bytes(const Problem& problem) const {
    const int64_t d = head_size(problem, 0), dv = head_size(problem, 2);
    if (!tensor_cores) return 4 * (rows() * d + 32 * (d + 1) + 32 * dv);
    const int64_t pitch = padded(d) + 8, value_pitch = padded(dv) + 8;
    return 2 * (rows() * pitch + 2 * keys * (pitch + value_pitch));
  }
};

// Why tensor cores cannot take it.
bool fits_tensor_cores(const Problem& problem) {
  const DType dtype = problem.inputs[0].dtype;
  if (dtype != DType::f16 && dtype != DType::bf16) return false;
  for (size_t i = 0; i < 3; ++i) {
    const Operand& operand = problem.inputs[i];
    if (operand.dtype != dtype || head_size(problem, i) % 8 != 0 || unit_dim(operand) != 3 || vector_width(operand) < 8)
      return false;
  }
  return true;
}

// Heads that lie in another order are read by strides.
std::optional<std::string> refuse_order(const Problem& problem) {
  for (size_t i = 0; i < 3; ++i) {
    const Operand& operand = problem.inputs[i];
    if (operand.parts.empty()) continue;
    if (std::any_of(operand.parts.begin(), operand.parts.end(), [](size_t count) { return count != 1; }))
      return "dimensions of heads in parts";
    Operand copy = operand;
    copy.strides = dense_strides(copy.dims, Layout::linear), copy.offset = 0;
    if (unit_dim(operand) != 3 || vector_width(operand) < vector_width(copy))
      return "heads in another order whose elements are not in vectors";
  }
  return std::nullopt;
}

// The mask as one of the scores' dimensions.
Operand scores_of(const Problem& problem) {
  const Operand &q = problem.inputs[0], &k = problem.inputs[1];
  Operand scores = q;
  scores.dims[3] = k.dims[2];
  scores.opt_dims[3] = k.opt_dims[2];
  return scores;
}

constexpr std::string_view kNames[] = {"Q", "K", "V"};

// The program before one of the three, whose operands become inputs of the emission; gives what the kernel reads.
std::string declare_program(Source& source, const Problem& problem, size_t input, Emission& emission) {
  const std::string_view name = kNames[input];
  const Problem::Prologue* prologue = problem.prologue_of(input);
  if (!prologue) return fmt::format("{}_", name);
  std::vector<Operand> views = {problem.inputs[input]};
  for (const Operand& operand : problem.operands_of(*prologue)) views.push_back(broadcast(operand, views[0]));
  source.prologue(prologue->program, views, emission.inputs.size(), name);
  for (size_t k = 1; k < views.size(); ++k)
    emission.inputs.push_back({StepInput::prologue, prologue->first_operand + k - 1});
  return fmt::format("Computed<{0}, {0}Prologue>{{{0}_, {0}Prologue_}}", name);
}

std::string literal(double value) { return fmt::format("{:a}f", static_cast<float>(value)); }

class AttentionTactic final : public Tactic {
 public:
  std::string_view name() const override { return "attention"; }
  bool takes_prologue(size_t input) const override { return input < 3; }
  bool reads_parts(size_t input) const override { return input < 3; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::attention)) return "not an attention";
    const DType dtype = problem.inputs[0].dtype;
    if (dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32)
      return fmt::format("its input is {}", name_of(dtype));
    if (has_mask(problem) && problem.inputs[3].dtype == DType::f64) return "its mask is f64";
    for (const size_t i : {0, 2}) {
      const int64_t size = head_size(problem, i);
      if (size == 0) return "the size of a head is not known";
      if (size > kMaxSize) return fmt::format("heads of {} elements, {} are handled", size, kMaxSize);
    }
    return refuse_order(problem);
  }

  std::vector<Config> configs(const Problem& problem) const override {
    std::vector<Config> configs;
    if (!fits_tensor_cores(problem)) {
      add(problem, {false, 4, 32, 4}, configs);
      add(problem, {false, 4, 32, 1}, configs);
    } else {
      for (const int64_t warps : {4, 8, 2, 1})
        for (const int64_t keys : {64, 128, 32}) add(problem, {true, warps, keys, 0}, configs);
    }
    std::stable_sort(configs.begin(), configs.end(),
                     [](const Config& a, const Config& b) { return a.predicted_us < b.predicted_us; });
    if (configs.size() > 5) configs.resize(5);
    return configs;
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    const Blocking shape = Blocking::of(config);
    const auto& attrs = problem.attrs<AttentionAttrs>();
    Emission emission;
    Source source(shape.tensor_cores ? "attention/attention.cuh" : "attention/attention_simt.cuh");
    for (size_t i = 0; i < 3; ++i) {
      source.input(i, problem.inputs[i], kNames[i]);
      emission.inputs.push_back({StepInput::input, i});
    }
    const bool masked = has_mask(problem);
    if (masked) {
      source.input(3, broadcast(problem.inputs[3], scores_of(problem)), "Mask");
      emission.inputs.push_back({StepInput::input, 3});
    }
    source.output(0, problem.outputs[0], "Y");
    source.fusion(problem, emission.inputs.size());
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    std::string operands;
    for (size_t i = 0; i < 3; ++i) operands += declare_program(source, problem, i, emission) + ", ";
    const std::string logits = fmt::format("Logits<{}, {}, {}>{{{}, {}, {}, Q_.dim(2), K_.dim(2)}}",
                                           masked ? "Mask" : "Unmasked", attrs.causal, attrs.softcap != 0,
                                           masked ? "Mask_" : "{}", literal(attrs.scale), literal(attrs.softcap));
    const int64_t d = head_size(problem, 0), dv = head_size(problem, 2);
    const std::string kernel =
        shape.tensor_cores ? fmt::format("attend<{}, {}, {}, {}>", padded(d), padded(dv), shape.warps, shape.keys)
                           : fmt::format("attend_simt<{}, {}, {}, {}>", d, dv, shape.warps, shape.queries);
    const lathe::Shape& q = problem.inputs[0].dims;
    emission.launches.push_back(source.finish(
        fmt::format("{}({}Y_, {}, fusion_);", kernel, operands, logits), {ceildiv(q[2], shape.rows()), q[0] * q[1], 1},
        static_cast<uint32_t>(shape.warps * 32), static_cast<uint32_t>(shape.shared_bytes(problem))));
    return emission;
  }

 private:
  static void add(const Problem& problem, const Blocking& shape, std::vector<Config>& configs) {
    const int64_t size = padded(std::max(head_size(problem, 0), head_size(problem, 2)));
    if (shape.shared_bytes(problem) > problem.target.limits.shared_bytes) return;
    if (shape.tensor_cores && shape.keys * size > 64 * 128 && shape.keys > 32) return;  // registers
    const Dims &q = problem.inputs[0].opt_dims, &k = problem.inputs[1].opt_dims;
    const auto heads = static_cast<double>(q[0] * q[1]), keys = static_cast<double>(k[2]);
    const double blocks = heads * std::ceil(static_cast<double>(q[2]) / static_cast<double>(shape.rows()));
    const Target& target = problem.target;
    // Of one block: operations in a clock, of which half are multiplications, and a fixed time for each tile.
    constexpr double kTileClocks = 850;
    const double tiles = std::ceil(keys / static_cast<double>(shape.keys));
    const double flops = 4.0 * static_cast<double>(shape.rows() * shape.keys * size);
    const double rate = shape.tensor_cores
                            ? 2.01 * target.products.matrix * std::min(1.0, static_cast<double>(shape.warps) / 4)
                            : 0.46 * target.products.f32;
    const double resident = std::floor(0.97 * static_cast<double>(target.limits.core_shared_bytes) /
                                       static_cast<double>(shape.shared_bytes(problem)));
    const double waves = std::max(1.0, blocks / target.cores);
    Config config;
    config.values = {shape.tensor_cores, shape.warps, shape.keys, shape.queries};
    config.text = shape.tensor_cores ? fmt::format("{}x{} queries x keys", shape.rows(), shape.keys)
                                     : fmt::format("{} queries in f32", shape.rows());
    config.predicted_us =
        target.launch_us +
        tiles * (waves * flops / rate + kTileClocks * std::max(1.0, waves / std::max(1.0, std::min(resident, 4.0)))) /
            target.clock_mhz;
    configs.push_back(std::move(config));
  }
};

}  // namespace

const Tactic& attention_tactic() {
  static const AttentionTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
