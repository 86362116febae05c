// SPDX-License-Identifier: Apache-2.0
// bench_kernels [threads] [filter] [all]: times the convolution kernels on the layers of four networks, each in every
// configuration of its tactic and with cold weights (copies are rotated), and prints what the tactic predicts, how much
// slower its first guess is than the best, the best in GF/s and percent of the FMA peak, and for each network how many
// first guesses are within 10 and 25 % of the best. `filter` is a part of "network layer"; "all" prints every
// configuration; "list" instead of threads prints the layers.
//
// Configurations are timed in turns, in several rounds: a machine that others use changes its speed.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/target.h"
#include "layers.h"
#include "peak.h"
#include "tuning/tactic.h"

namespace lathe::cpu {
const Tactic& conv_tactic();
const Tactic& depthwise_tactic();
}  // namespace lathe::cpu

namespace lathe::bench {
namespace {

using namespace lathe::cpu;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;
constexpr double kRoundMs = 3;  // of a configuration

struct Buffer {
  explicit Buffer(size_t floats) : count(floats) {
    data = static_cast<float*>(std::aligned_alloc(4096, (floats * sizeof(float) / 4096 + 2) * 4096));
    std::mt19937 engine(1);
    for (size_t i = 0; i < floats; ++i) data[i] = static_cast<float>(engine() % 2048) / 1024.0f - 1.0f;
  }
  ~Buffer() { std::free(data); }
  Buffer(const Buffer&) = delete;
  float* data;
  size_t count;
};

Operand tensor(const Dims& dims, const Dims& strides) {
  Operand operand;
  operand.dims = to_shape(dims), operand.opt_dims = dims;
  operand.strides = to_shape(strides), operand.opt_strides = strides;
  return operand;
}
Operand image(int64_t channels, int64_t size, Layout layout) {
  const Dims dims = {1, channels, size, size};
  return tensor(dims, dense_strides(dims, layout));
}

ConvolutionAttrs attributes_of(const Layer& layer) {
  ConvolutionAttrs attrs;
  attrs.stride = {layer.stride, layer.stride};
  attrs.pads_begin = attrs.pads_end = {layer.pad(), layer.pad()};
  attrs.groups = layer.kind == Layer::depthwise ? layer.channels : 1;
  return attrs;
}

// `attrs` and `weights` must outlive it.
Problem problem_of(const Layer& layer, const ConvolutionAttrs& attrs, const Tensor& weights, int threads) {
  Problem problem;
  problem.attributes = &attrs;
  problem.target = describe_machine(threads);
  problem.program = *parse_program(layer.program);
  Operand w = tensor(weights.dims(), dense_strides(weights.dims(), Layout::linear));
  w.constant = &weights;
  const Layout layout = layer.kind == Layer::stem ? Layout::linear : Layout::channels_last;
  problem.inputs = {image(layer.channels, layer.in_size, layout), std::move(w)};
  problem.outputs = {image(layer.out_channels, layer.out_size(), Layout::channels_last)};
  problem.operands = {tensor({1, layer.out_channels, 1, 1}, {0, 1, 0, 0})};
  if (problem.program.num_inputs == 3) problem.operands.push_back(problem.outputs[0]);
  return problem;
}

TensorArg argument(const Operand& operand, float* data) {
  TensorArg arg{data, operand.dtype, operand.rank()};
  std::copy(operand.opt_dims.begin(), operand.opt_dims.end(), arg.dims);
  std::copy(operand.opt_strides.begin(), operand.opt_strides.end(), arg.strides);
  return arg;
}

size_t volume(const Operand& operand) {
  size_t volume = 1;
  for (const int64_t dim : operand.opt_dims) volume *= static_cast<size_t>(dim);
  return volume;
}

// A configuration with its kernel, ready to run.
class Candidate {
 public:
  Candidate(const Problem& problem, const Tactic& tactic, const Match& match, Config config)
      : config_(std::move(config)), emission_(*match.emit(config_)), floats_(emission_.packed[0].content().volume()) {
    kernel_ = std::move(find_kernel(tactic.name())({emission_.params, &problem.program}).value());
  }

  const Config& config() const { return config_; }

  // Milliseconds of the fastest of some runs; every run reads another copy of the weights.
  double time(std::vector<TensorArg> inputs, const std::vector<TensorArg>& outputs, ThreadPool& pool) {
    static Buffer weights(size_t{64} << 20 >> 2);
    const size_t stride = (static_cast<size_t>(floats_) + 15) / 16 * 16;
    const size_t copies = std::clamp<size_t>(weights.count / (stride + 1), 1, 64);
    inputs[1] = {weights.data, DType::f32, 1, {floats_}, {1}};
    if (!kernel_->check(inputs, outputs)) return HUGE_VAL;
    const Buffer workspace(kernel_->workspace_bytes(inputs, outputs, pool.size()) / sizeof(float) + 1);
    double best = 1e9, total = 0;
    for (int i = 0; (i < 2 || total < kRoundMs) && i < 100; ++i) {
      inputs[1].data = weights.data + next_++ % copies * stride;
      const auto start = Clock::now();
      kernel_->run({inputs, outputs, reinterpret_cast<std::byte*>(workspace.data), pool});
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      best = std::min(best, ms);
      total += ms;
    }
    return best;
  }

 private:
  Config config_;
  Emission emission_;
  int64_t floats_;
  std::unique_ptr<cpu::Kernel> kernel_;
  size_t next_ = 0;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Of each configuration: the median of its rounds, each as a share of its round, of the fastest round.
std::vector<double> times_of(const Problem& problem, std::vector<Candidate>& candidates, ThreadPool& pool) {
  const Buffer x(volume(problem.inputs[0])), bias(4096), residual(volume(problem.outputs[0])),
      out(volume(problem.outputs[0]));
  std::vector<TensorArg> inputs{argument(problem.inputs[0], x.data), {}, argument(problem.operands[0], bias.data)};
  if (problem.operands.size() > 1) inputs.push_back(argument(problem.operands[1], residual.data));
  const std::vector<TensorArg> outputs{argument(problem.outputs[0], out.data)};
  std::vector<std::vector<double>> shares(candidates.size());
  double fastest = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> times;
    for (Candidate& candidate : candidates) times.push_back(candidate.time(inputs, outputs, pool));
    const double usual = median(times);
    fastest = std::min(fastest, usual);
    for (size_t i = 0; i < times.size(); ++i) shares[i].push_back(times[i] / usual);
  }
  std::vector<double> times;
  for (const std::vector<double>& share : shares) times.push_back(fastest * median(share));
  return times;
}

// How the predictions of some layers did.
struct Score {
  int layers = 0, within_10 = 0, within_25 = 0;
  double first_ms = 0, best_ms = 0;  // of the network

  void print(const std::string& network) const {
    fmt::print("{}: {} layers, the first guess within 10 % of the best: {}, 25 %: {}; {:.2f} ms, best {:.2f} ms\n",
               network, layers, within_10, within_25, first_ms, best_ms);
  }
};

void run_layer(const Layer& layer, ThreadPool& pool, double peak, bool print_all, Score& score) {
  const ConvolutionAttrs attrs = attributes_of(layer);
  const int64_t inputs = layer.channels / attrs.groups;
  const Buffer random(static_cast<size_t>(layer.out_channels * inputs * layer.kernel * layer.kernel));
  Tensor weights = *Tensor::allocate(DType::f32, {layer.out_channels, inputs, layer.kernel, layer.kernel});
  std::copy_n(random.data, random.count, weights.mutable_as<float>());
  const Problem problem = problem_of(layer, attrs, weights, pool.size());
  const Tactic& tactic = layer.kind == Layer::depthwise ? depthwise_tactic() : conv_tactic();
  const Matched match = tactic.match(problem);
  if (!match) return fmt::print("{}: {}\n", layer.text(), match.error().reason);
  std::vector<Candidate> candidates;
  for (Config& config : (*match)->configs()) candidates.emplace_back(problem, tactic, **match, std::move(config));
  const std::vector<double> times = times_of(problem, candidates, pool);
  for (size_t i = 0; print_all && i < times.size(); ++i)
    fmt::print("    {:9.1f} us predicted {:9.1f}  {}\n", 1e3 * times[i], candidates[i].config().predicted_us,
               candidates[i].config().text);
  const auto best = static_cast<size_t>(std::min_element(times.begin(), times.end()) - times.begin());
  const double rate = layer.flops() / times[best] / 1e6, slower = times[0] / times[best];
  fmt::print("{:16} {:34} x{} {:8.3f} ms {:6.1f} GF/s {:3.0f} %  {}; first guess +{:.0f} %, predicted {:.3f}  {}\n",
             layer.network, layer.text(), layer.count, times[best], rate, 100 * rate / peak,
             candidates[best].config().text, 100 * (slower - 1), candidates[0].config().predicted_us / 1e3,
             candidates[0].config().text);
  std::fflush(stdout);
  ++score.layers;
  score.within_10 += slower <= 1.10;
  score.within_25 += slower <= 1.25;
  score.first_ms += times[0] * layer.count;
  score.best_ms += times[best] * layer.count;
}

int run(int threads, const std::string& filter, bool print_all) {
  auto pool = ThreadPool::create({.threads = threads});
  if (!pool) return 1;
  const double peak = measure_peak() * threads;
  fmt::print("FMA peak {:.0f} GF/s on {} threads, {}\n", peak, threads, name_of(isa_level()));
  std::string network;
  Score score;
  for (const Layer& layer : layers()) {
    if ((layer.network + " " + layer.text()).find(filter) == std::string::npos) continue;
    if (layer.network != network && !network.empty()) score.print(network), score = {};
    network = layer.network;
    run_layer(layer, **pool, peak, print_all, score);
  }
  score.print(network);
  return 0;
}

}  // namespace
}  // namespace lathe::bench

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "1";
  if (first == "list") {
    for (const auto& layer : lathe::bench::layers())
      fmt::print("{} {} {} {} {} {} {} {} {}\n", layer.network, static_cast<int>(layer.kind), layer.channels,
                 layer.out_channels, layer.kernel, layer.stride, layer.in_size, layer.count, layer.program);
    return 0;
  }
  return lathe::bench::run(std::atoi(first.c_str()), argc > 2 ? argv[2] : "", argc > 3);
}
