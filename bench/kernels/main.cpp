// SPDX-License-Identifier: Apache-2.0
// bench_kernels [threads] [filter] [all]: times the convolution kernels on the layers of four networks, each with every
// candidate configuration and cold weights (copies are rotated), and prints the best, in GF/s and percent of the FMA
// peak. `filter` is a part of "network layer"; "all" prints every candidate; "list" instead of threads prints the
// layers.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/depthwise/depthwise.h"
#include "kernels/cpu/kernel_table.h"
#include "layers.h"
#include "peak.h"

namespace lathe::bench {
namespace {

using namespace lathe::cpu;
using Clock = std::chrono::steady_clock;

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

struct Candidate {
  std::string text;
  std::vector<int64_t> params;
  size_t packed_floats;
};

std::vector<Candidate> candidates_of(const Layer& layer, int threads) {
  std::vector<Candidate> found;
  if (layer.kind == Layer::depthwise) {
    depthwise::Shape shape{2, layer.channels};
    for (int d = 1; d < 3; ++d) {
      shape.kernel[d] = layer.kernel;
      shape.stride[d] = layer.stride;
      shape.pad[d] = layer.pad();
    }
    for (const auto& config : depthwise::candidates(shape, layer.out_size(), threads))
      found.push_back({fmt::format("pixels {} channels {}", config.pixels, config.split_channels),
                       encode_params(depthwise::DepthwiseParams{shape, config}),
                       static_cast<size_t>(depthwise::packed_floats(shape))});
    return found;
  }
  conv::ConvProblem problem;
  problem.shape.in_channels = layer.channels;
  problem.shape.out_channels = layer.out_channels;
  for (int d = 1; d < 3; ++d) {
    problem.shape.kernel[d] = layer.kernel;
    problem.shape.stride[d] = layer.stride;
    problem.shape.pad[d] = layer.pad();
    problem.out[d] = layer.out_size();
  }
  problem.planar_input = layer.kind == Layer::stem;
  for (const auto& config : conv::candidates(problem, threads))
    found.push_back({fmt::format("algorithm {} width {} rows {} row_block {} k_block {} columns {} aligned {}",
                                 static_cast<int>(config.algorithm), config.blocking.width, config.blocking.rows,
                                 config.blocking.row_block, config.blocking.k_block, config.blocking.split_columns,
                                 config.row_aligned),
                     encode_params(conv::ConvParams{problem.shape, config}),
                     static_cast<size_t>(conv::packed_floats(problem.shape, config))});
  return found;
}

TensorArg image(float* data, int64_t channels, int64_t size, bool planar) {
  if (planar) return {data, DType::f32, 4, {1, channels, size, size}, {channels * size * size, size * size, size, 1}};
  return {data, DType::f32, 4, {1, channels, size, size}, {channels * size * size, 1, size * channels, channels}};
}

// Milliseconds of the fastest of several runs; every run reads another copy of the weights.
double time_of(const Layer& layer, const Candidate& candidate, ThreadPool& pool) {
  const auto program = parse_program(layer.program);
  auto kernel = find_kernel(layer.kind == Layer::depthwise ? "depthwise" : "conv")({candidate.params, &*program});
  if (!kernel) return 1e9;
  const size_t copies = std::clamp<size_t>((size_t{48} << 20) / (candidate.packed_floats * 4 + 1), 1, 64);
  static Buffer weights(size_t{64} << 20 >> 2);
  const size_t pixels = static_cast<size_t>(layer.out_size() * layer.out_size());
  Buffer x(static_cast<size_t>(layer.channels * layer.in_size * layer.in_size)), bias(4096),
      residual(pixels * static_cast<size_t>(layer.out_channels)), out(pixels * static_cast<size_t>(layer.out_channels));
  std::vector<TensorArg> inputs{image(x.data, layer.channels, layer.in_size, layer.kind == Layer::stem),
                                {},
                                {bias.data, DType::f32, 4, {1, layer.out_channels, 1, 1}, {0, 1, 0, 0}}};
  if (program->num_inputs == 3) inputs.push_back(image(residual.data, layer.out_channels, layer.out_size(), false));
  const std::vector<TensorArg> outputs{image(out.data, layer.out_channels, layer.out_size(), false)};
  const int64_t packed = static_cast<int64_t>(candidate.packed_floats);
  inputs[1] = {weights.data, DType::f32, 1, {packed}, {1}};
  if (auto checked = (*kernel)->check(inputs, outputs); !checked) {
    fmt::print("{}: {}\n", layer.text(), checked.error().to_string());
    return 1e9;
  }
  Buffer workspace((*kernel)->workspace_bytes(inputs, outputs, pool.size()) / 4 + 1);
  double best = 1e9, total = 0;
  const size_t stride = (candidate.packed_floats + 15) / 16 * 16;
  for (int i = 0; (i < 4 || total < 15) && i < 300; ++i) {
    inputs[1].data = weights.data + static_cast<size_t>(i) % copies * stride;
    const auto start = Clock::now();
    (*kernel)->run({inputs, outputs, reinterpret_cast<std::byte*>(workspace.data), pool});
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    best = std::min(best, ms);
    total += ms;
  }
  return best;
}

int run(int threads, const std::string& filter, bool print_all) {
  auto pool = ThreadPool::create({.threads = threads});
  if (!pool) return 1;
  const double peak = measure_peak() * threads;
  fmt::print("FMA peak {:.0f} GF/s on {} threads, {}\n", peak, threads, name_of(isa_level()));
  std::string network;
  double sum = 0;
  for (const Layer& layer : layers()) {
    if ((layer.network + " " + layer.text()).find(filter) == std::string::npos) continue;
    if (layer.network != network && !network.empty()) {
      fmt::print("{}: {:.2f} ms\n", network, sum);
      sum = 0;
    }
    network = layer.network;
    double best = 1e9, first = 0;
    std::string choice;
    for (const Candidate& candidate : candidates_of(layer, threads)) {
      const double ms = time_of(layer, candidate, **pool);
      if (first == 0) first = ms;
      if (print_all) fmt::print("    {:8.3f} ms  {}\n", ms, candidate.text);
      if (ms < best) {
        best = ms;
        choice = candidate.text;
      }
    }
    sum += best * layer.count;
    const double rate = layer.flops() / best / 1e6;
    fmt::print("{:16} {:34} x{} {:8.3f} ms {:6.1f} GF/s {:3.0f} %  (first guess {:.3f})  {}\n", layer.network,
               layer.text(), layer.count, best, rate, 100 * rate / peak, first, choice);
    std::fflush(stdout);
  }
  fmt::print("{}: {:.2f} ms\n", network, sum);
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
