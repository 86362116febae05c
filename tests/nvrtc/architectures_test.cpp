// SPDX-License-Identifier: Apache-2.0
// Device code compiles for every architecture: each header by itself, and the kernels of a network in each precision.
// NVRTC is NVIDIA's own; no GPU is needed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "device/cuda/nvrtc.h"
#include "device/cuda/nvrtc_compiler.h"
#include "ir/graph.h"
#include "kernels/cuda/headers.h"
#include "lathe.h"
#include "lowering/build.h"
#include "nvrtc/architectures.h"
#include "source_dir.h"

namespace lathe::cuda {
namespace {

struct LastError final : nvinfer1::ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kERROR) text = message;
  }
  std::string text;
};

// What a header lacks it lacks everywhere, but for parts that some architectures alone have: each by itself for the
// oldest one and for the one with the most instructions, those of a folder together for the others.
TEST_P(Architectures, EveryHeader) {
  const auto compiler = NvrtcCompiler::create(target(), headers());
  ASSERT_TRUE(compiler) << compiler.error().to_string();
  const bool alone = GetParam() == 75 || GetParam() == 90;
  std::vector<std::string> sources;
  std::string_view last;
  for (const Header& header : headers()) {
    const std::string_view name = header.name, folder = name.substr(0, name.find('/'));
    if (!name.ends_with(".cuh")) continue;  // formulas are parts of headers
    if (alone || folder != std::exchange(last, folder)) sources.emplace_back();
    sources.back() += fmt::format("#include \"{}\"\n", name);
  }
  for (const std::string& source : sources) {
    const auto code = (*compiler)->compile(source + "extern \"C\" __global__ void lathe_kernel() {}\n");
    EXPECT_TRUE(code) << source << ": " << code.error().to_string();
  }
}

TEST_P(Architectures, EveryPrecisionOfANetwork) {
  LastError error;
  const std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(error));
  const std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
  const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, error));
  ASSERT_TRUE(parser->parseFromFile(source_path("/examples/digits/digits.onnx").c_str(), 0)) << error.text;
  for (const auto precision : {nvinfer1::DataType::kFLOAT, nvinfer1::DataType::kHALF, nvinfer1::DataType::kBF16}) {
    const std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
    ASSERT_TRUE(setTarget(*config, target().c_str())) << lastError();
    ASSERT_TRUE(setPrecision(*config, precision));
    setBuildBudget(*config, 0);
    const std::unique_ptr<nvinfer1::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    ASSERT_NE(plan, nullptr) << static_cast<int>(precision) << ": " << error.text;
    // Each step has a kernel that the architecture can compile.
    const std::unique_ptr<nvinfer1::IHostMemory> json(planJson(plan->data(), plan->size()));
    const std::string_view told(static_cast<const char*>(json->data()), json->size());
    EXPECT_NE(told.find(R"("evaluated_share": "0.0000")"), told.npos) << told;
  }
}

// Kernels that compute what they read: rows, columns, and attention with and without tensor cores. Beside them
// attention of a prompt, with sinks.
TEST_P(Architectures, ProgramsBeforeKernels) {
  for (const std::string type : {"f32", "f16"}) {
    const std::string text = R"(graph "g" {
      input %x: T[2, 8, 16, 24]
      input %y: T[2, 1, 16, 24]
      input %bias: T[8, 1, 24]
      %a = elementwise{op=mul}(%x, %y)
      %rows = reduce{op=mean, axes=[3]}(%a)
      %b = elementwise{op=add}(%x, %y)
      %columns = reduce{op=max, axes=[0]}(%b)
      %c = elementwise{op=max}(%x, %y)
      %across = softmax{axis=1}(%c)
      %d = elementwise{op=min}(%x, %y)
      %along = softmax{axis=3}(%d)
      %q = elementwise{op=add}(%x, %bias)
      %k = elementwise{op=sub}(%x, %bias)
      %v = elementwise{op=mul}(%x, %bias)
      %z = attention{scale=0.25}(%q, %k, %v)
      input %prompt: T[1, 8, 1024, 64]
      %sinks = constant{value=T[8]{~1}}()
      %sunk = attention{scale=0.125, causal=true}(%prompt, %prompt, %prompt, _, %sinks)
      output %rows
      output %columns
      output %across
      output %along
      output %z
      output %sunk
    })";
    const Result<std::unique_ptr<BuiltPlan>> built = build(text, type);
    ASSERT_TRUE(built) << built.error().to_string();
    for (const plan::Step& step : (*built)->plan.steps) EXPECT_NE(step.kernel(), "pointwise") << step.name;
    for (const RegionReport& region : (*built)->report.regions)
      for (const std::string& refusal : region.refusals) EXPECT_EQ(refusal.find("spills"), refusal.npos) << refusal;
  }
}

// Kernels that read and write in another order: heads that are split off and joined, pixels that are shuffled.
TEST_P(Architectures, Movement) {
  for (const std::string type : {"f32", "f16"}) {
    const std::string text = R"(graph "g" {
      input %x: T[2, 12, 128, 64]
      input %y: T[2, 128, 768]
      %w = constant{value=T[768, 768]{~1}}()
      %s = constant{value=i64[3]{0, 0, 768}}()
      %h = constant{value=i64[4]{0, 0, 12, 64}}()
      %t = transpose{perm=[0, 2, 1, 3]}(%x)
      %r = reshape(%t, %s)
      %joined = matmul(%r, %w)
      %m = matmul(%y, %w)
      %v = reshape(%m, %h)
      %split = transpose{perm=[0, 2, 1, 3]}(%v)
      input %image: T[1, 32, 16, 16]
      %k = constant{value=T[64, 32, 3, 3]{~2}}()
      %c = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%image, %k)
      %d = depth_to_space{block=2, mode=crd}(%c)
      %p = pooling{op=max, window=[2, 2], stride=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%d)
      output %joined
      output %split
      output %p
    })";
    const Result<std::unique_ptr<BuiltPlan>> built = build(text, type);
    ASSERT_TRUE(built) << built.error().to_string();
    std::vector<std::string> kernels;
    for (const plan::Step& step : (*built)->plan.steps) kernels.emplace_back(step.kernel());
    EXPECT_EQ(kernels, (std::vector<std::string>{"gemm", "gemm", "copy", "conv", "pooling", "copy"}));
  }
}

// Products large enough for the copy engine, where there is one that tiles know, and rows by experts: few, and sorted.
TEST_P(Architectures, LargeProducts) {
  for (const std::string type : {"f16", "bf16"}) {
    const std::string text = R"(graph "g" {
      input %x: T[4096, 768]
      input %residual: T[4096, 3072]
      %w = constant{value=T[768, 3072]{~1}}()
      %m = matmul(%x, %w)
      %y = elementwise{op=add}(%m, %residual)
      output %y
      input %token: T[1, 768]
      input %choices: i64[2]
      input %chosen: i64[4096]
      %v = constant{value=T[8, 768, 512]{~2}}()
      %few = expert_matmul(%token, %v, %choices)
      %many = expert_matmul(%x, %v, %chosen)
      output %few
      output %many
    })";
    const Result<std::unique_ptr<BuiltPlan>> built = build(text, type);
    ASSERT_TRUE(built) << built.error().to_string();
    std::string tactics;
    for (const plan::Step& step : (*built)->plan.steps) tactics += step.tactic + "; ";
    EXPECT_EQ(tactics.find("tma ") != std::string::npos, GetParam() == 90) << type << ": " << tactics;
    for (const char* form : {" few; ", " sorted; "}) EXPECT_NE(tactics.find(form), std::string::npos) << tactics;
  }
}

// Products and convolutions of levels, with what makes levels of them again: each by the instructions that it has.
TEST_P(Architectures, Integers) {
  const std::string text = R"(graph "g" {
    input %x: T[4096, 768]
    input %image: T[32, 256, 14, 14]
    input %residual: T[32, 256, 14, 14]
    input %volume: T[4, 64, 8, 28, 28]
    %w = constant{value=T[768, 3072]{~1}}()
    %k = constant{value=T[256, 256, 3, 3]{~2}}()
    %fine = constant{value=f32[]{0.0002}}()
    %coarse = constant{value=f32[]{0.07}}()
    %m = matmul(%x, %w)
    %a = dequantize{to=f32}(%m, %fine)
    %y = quantize{to=i8}(%a, %coarse)
    %c = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%image, %k)
    %b = dequantize{to=f32}(%c, %fine)
    %r = dequantize{to=f32}(%residual, %coarse)
    %sum = elementwise{op=add}(%b, %r)
    %relu = activation{op=relu}(%sum)
    %z = quantize{to=i8}(%relu, %coarse)
    %k3 = constant{value=T[256, 64, 3, 3, 3]{~3}}()
    %c3 = convolution{stride=[1, 1, 1], pads_begin=[1, 1, 1], pads_end=[1, 1, 1], dilation=[1, 1, 1]}(%volume, %k3)
    %b3 = dequantize{to=f32}(%c3, %fine)
    %z3 = quantize{to=i8}(%b3, %coarse)
    output %y
    output %z
    output %z3
  })";
  const Result<std::unique_ptr<BuiltPlan>> built = build(text, "i8");
  ASSERT_TRUE(built) << built.error().to_string();
  std::string tactics;
  for (const plan::Step& step : (*built)->plan.steps) tactics += step.tactic + "; ";
  for (const char* instructions : {"gemm: tma ", "conv: tma ", "conv: wgmma "})  // windows of volumes are gathered
    EXPECT_EQ(tactics.find(instructions) != std::string::npos, GetParam() == 90) << tactics;
}

// Products of 8-bit floats, which become such again, by rows that are written as they are, too.
TEST_P(Architectures, FloatsOf8Bits) {
  for (const std::string type : {"f8e4m3fn", "f8e5m2"}) {
    const std::string text = fmt::format(R"(graph "g" {{
      input %x: f32[4096, 768]
      %s = constant{{value=f32[]{{0.07}}}}()
      %n = rms_normalization(%x, %s)
      %q = quantize{{to={0}}}(%n, %s)
      %d = dequantize(%q, %s)
      %w = constant{{value=f32[768, 3072]{{~1}}}}()
      %p = quantize{{to={0}}}(%w, %s)
      %v = dequantize(%p, %s)
      %m = matmul(%d, %v)
      %y = quantize{{to={0}}}(%m, %s)
      output %n
      output %y
    }})",
                                         type);
    const Result<std::unique_ptr<BuiltPlan>> built = build(text, type);
    ASSERT_TRUE(built) << built.error().to_string();
    std::string tactics;
    for (const plan::Step& step : (*built)->plan.steps) tactics += step.tactic + "; ";
    EXPECT_EQ(tactics.find("tma ") != std::string::npos, GetParam() == 90) << tactics;
    EXPECT_EQ(tactics.find("evaluation"), std::string::npos) << tactics;
    EXPECT_EQ((*built)->plan.steps.size(), 2u) << tactics;
    if (GetParam() != 90) continue;  // others have smaller tiles beside those that spill
    for (const RegionReport& region : (*built)->report.regions)
      for (const std::string& refusal : region.refusals) EXPECT_EQ(refusal.find("spills"), refusal.npos) << refusal;
  }
}

// Where the device has matrix units that leave out zeros.
TEST_P(Architectures, SparseWeights) {
  const bool has_units = GetParam() >= 80;
  for (const std::string type : {"f16", "bf16", "i8"}) {
    const std::string text = R"(graph "g" {
      input %x: T[256, 768]
      %values = constant{value=T[512, 192, 4]{~1}}()
      %places = constant{value=T[4]{0, 1, 0, 1}}()
      %sparse = elementwise{op=mul}(%values, %places)
      %dims = constant{value=i64[2]{512, 768}}()
      %w = reshape(%sparse, %dims)
      %y = matmul{transpose_b=true}(%x, %w)
      input %image: T[8, 64, 14, 14]
      %taps = constant{value=T[128, 16, 4, 3, 3]{~2}}()
      %channels = constant{value=T[4, 1, 1]{1, 0, 0, 1}}()
      %few = elementwise{op=mul}(%taps, %channels)
      %shape = constant{value=i64[4]{128, 64, 3, 3}}()
      %k = reshape(%few, %shape)
      %c = convolution{pads_begin=[1, 1], pads_end=[1, 1]}(%image, %k)
      output %y
      output %c
    })";
    const Result<std::unique_ptr<BuiltPlan>> built = build(text, type, {"gemm", "conv"});
    ASSERT_TRUE(built) << built.error().to_string();
    size_t count = 0;
    for (const plan::Step& step : (*built)->plan.steps) count += step.kernel().ends_with("_sparse");
    EXPECT_EQ(count, has_units ? 2u : 0u) << type;
    for (const RegionReport& region : (*built)->report.regions)
      for (const std::string& refusal : region.refusals) EXPECT_EQ(refusal.find("spills"), refusal.npos) << refusal;
  }
}

// Steps that share a launch: rows of a table, an expression, and slices that are turned as they are written into a
// cache. A gate and what it gates are one product.
TEST_P(Architectures, JoinedSteps) {
  for (const std::string type : {"f32", "f16"}) {
    const std::string text = R"(graph "g" {
      symbol n in [1, 16]
      input %ids: i64[n]
      input %x: T[n, 64]
      input %z: f32[n, 96]
      input %cache: T[n, 4, 32, 16]
      input %u: T[n, 2, 64]
      input %first: i64[n]
      %table = constant{value=T[50, 64]{~1}}()
      %rows = gather{axis=0}(%table, %ids)
      %e = activation{op=sigmoid}(%z)
      %h = constant{value=i64[4]{0, 0, 4, 16}}()
      %v = reshape(%u, %h)
      %t = transpose{perm=[0, 2, 1, 3]}(%v)
      %m = activation{op=tanh}(%t)
      %kept = tensor_scatter{axis=2}(%cache, %m, %first)
      %gate = constant{value=T[64, 128]{~2}}()
      %up = constant{value=T[64, 128]{~3}}()
      %p = matmul(%x, %gate)
      %a = activation{op=silu}(%p)
      %q = matmul(%x, %up)
      %y = elementwise{op=mul}(%a, %q)
      output %rows
      output %e
      output %kept
      output %y
    })";
    const Result<std::unique_ptr<BuiltPlan>> built = build(text, type);
    ASSERT_TRUE(built) << built.error().to_string();
    std::vector<std::string> kernels;
    for (const plan::Step& step : (*built)->plan.steps) kernels.emplace_back(step.kernel());
    ASSERT_EQ(kernels.size(), 3u) << type << ": " << testing::PrintToString(kernels);
    EXPECT_TRUE((*built)->plan.steps[0].is<plan::Copy>());  // unless the cache is changed in place
    EXPECT_EQ(kernels[1], "gather+pointwise+tensor_scatter") << type;
    EXPECT_TRUE(kernels[2] == "gemm" || kernels[2] == "gemv") << type << ": " << kernels[2];
  }
}

// Layers of recurrent networks: their weights fit registers, or shared memory, or neither.
TEST_P(Architectures, Recurrences) {
  for (const std::string type : {"f32", "f16"})
    for (const std::string hidden : {"37", "600"}) {
      std::string text = R"(graph "g" {
        input %x: T[5, 3, LSTM]
        input %z: T[5, 3, GRU]
        input %lengths: i32[3]
        %r = constant{value=T[2, FOUR, N]{~1}}()
        %s = constant{value=T[1, THREE, N]{~2}}()
        %y, %h, %c = recurrence{direction=bidirectional}(%x, %r, _, %lengths)
        %a, %b = recurrence{cell=gru}(%z, %s)
        %d, %e = recurrence{cell=gru, direction=reverse, linear_before_reset=true}(%z, %s)
        output %y
        output %a
        output %d
      })";
      const int64_t n = std::stoll(hidden);
      for (const auto& [name, value] : std::vector<std::pair<std::string, int64_t>>{
               {"LSTM", 8 * n}, {"GRU", 3 * n}, {"FOUR", 4 * n}, {"THREE", 3 * n}, {"N", n}})
        for (size_t at = text.find(name); at != std::string::npos; at = text.find(name))
          text.replace(at, name.size(), std::to_string(value));
      const Result<std::unique_ptr<BuiltPlan>> built = build(text, type);
      ASSERT_TRUE(built) << built.error().to_string();
      for (const plan::Step& step : (*built)->plan.steps) EXPECT_EQ(step.kernel(), "recurrence") << type << hidden;
      for (const RegionReport& region : (*built)->report.regions)
        for (const std::string& refusal : region.refusals) EXPECT_EQ(refusal.find("spills"), refusal.npos) << refusal;
    }
}

// Kernels whose work is split over blocks and added up after that.
TEST_P(Architectures, Splits) {
  for (const std::string type : {"f32", "f16"}) {
    const std::string text = R"(graph "g" {
      input %x: T[48, 4096]
      input %v: T[1, 16384]
      input %r: T[2, 90000]
      input %c: T[9000, 16]
      %w = constant{value=T[4096, 512]{~1}}()
      %y = matmul(%x, %w)
      %few = constant{value=T[16384, 64]{~2}}()
      %z = matmul(%v, %few)
      %rows = reduce{op=mean, axes=[1]}(%r)
      %columns = reduce{op=sum, axes=[0]}(%c)
      %softmax = softmax{axis=0}(%c)
      %k = constant{value=i64[1]{8}}()
      %best, %where = topk{axis=1}(%r, %k)
      %many = constant{value=i64[1]{500}}()
      %better, %there = topk{axis=1}(%r, %many)
      %along = constant{value=i64[1]{1}}()
      %sums = cumulative(%r, %along)
      %products = cumulative{op=prod, exclusive=true, reverse=true}(%x, %along)
      output %y
      output %z
      output %rows
      output %columns
      output %softmax
      output %best
      output %where
      output %sums
      output %products
    })";
    const Result<std::unique_ptr<BuiltPlan>> built = build(text, type);
    ASSERT_TRUE(built) << built.error().to_string();
    const std::vector<plan::Step>& steps = (*built)->plan.steps;
    size_t scans = 0;  // which may be parts of launches
    for (const plan::Step& step : steps)
      for (size_t at = 0; (at = step.tactic.find("cumulative: ", at)) != std::string::npos; ++at) ++scans;
    EXPECT_EQ(scans, 2u) << type;
  }
}

// One of each set of instructions; sm_86 has those of sm_80 and the shared memory of sm_120.
INSTANTIATE_TEST_SUITE_P(Each, Architectures, testing::Values(75, 80, 90, 100, 120));

}  // namespace
}  // namespace lathe::cuda
