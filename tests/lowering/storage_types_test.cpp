// SPDX-License-Identifier: Apache-2.0
// Plans whose tensors lie packed, or whose elements no kernel reads, compute what the graph says.
#include <algorithm>

#include "base/encoding.h"
#include "fixtures/warnings.h"
#include "lowering/engine_fixture.h"

namespace lathe {
namespace {

Tensor codes(DType type, Dims dims) {
  Tensor tensor = *Tensor::allocate(type, std::move(dims));
  for (int64_t i = 0; i < tensor.volume(); ++i)
    store_code(type, tensor.mutable_data(), i, static_cast<uint8_t>(i * 7 + 3));
  return tensor;
}

// Results of the graph, whose inputs are of these dims, by plan and by plain evaluation; they must have the same bits.
void expect_same(const std::string& text, const std::vector<Tensor>& inputs, bool optimize) {
  SCOPED_TRACE(text);
  Result<ir::Graph> graph = ir::parse_graph(text);
  ASSERT_TRUE(graph) << graph.error().to_string();
  const auto want = ir::interpret(*graph, inputs);
  ASSERT_TRUE(want) << want.error().to_string();
  BuildOptions options = native_options();
  options.optimize = optimize;
  const std::shared_ptr<const Engine> engine = build_engine(text, options);
  ASSERT_TRUE(engine);
  const auto context = Context::create(engine);
  ASSERT_TRUE(context) << context.error().to_string();
  const std::vector<Tensor> have = run_engine(**context, inputs);
  ASSERT_EQ(have.size(), want->size());
  for (size_t i = 0; i < have.size(); ++i)
    EXPECT_TRUE(identical(have[i], (*want)[i])) << i << "\n" << to_text(have[i]) << "\n" << to_text((*want)[i]);
}

class StorageTypes : public testing::TestWithParam<DType> {};

TEST_P(StorageTypes, MoveThroughPlans) {
  const std::string type(name_of(GetParam()));
  const std::string text = "graph g {\n  input %x: " + type + "[n, 3, 5]\n  input %v: " + type + R"([n, 1, 5]
  %perm = transpose{perm=[2, 0, 1]}(%x)
  %both = concat{axis=1}(%x, %v)
  %one = constant{value=i64[1]{1}}()
  %three = constant{value=i64[1]{3}}()
  %part = slice(%both, %one, %three, %one)
  %flat = flatten(%part)
  %index = constant{value=i64[2]{4, 0}}()
  %picked = gather{axis=2}(%x, %index)
  %same = identity(%x)
  output %perm
  output %both
  output %flat
  output %picked
  output %same
})";
  for (const bool optimize : {false, true})
    for (const int64_t n : {1, 3})
      expect_same(text, {codes(GetParam(), {n, 3, 5}), codes(GetParam(), {n, 1, 5})}, optimize);
}

TEST_P(StorageTypes, AreCastAndDequantised) {
  const std::string type(name_of(GetParam()));
  const std::string text =
      "graph g {\n  input %x: f32[n, 7]\n  input %q: " + type + "[n, 7]\n  %c = cast{to=" + type + R"(}(%x)
  %back = cast{to=f32}(%c)
  %wide = cast{to=f16}(%q)
  %sum = elementwise{op=add}(%back, %x)
  output %c
  output %sum
  output %wide
})";
  const Tensor x = Tensor::of<float>({2, 7}, {0, 1, -1.5f, 2.25f, 3, 0.3f, 6, 7, 0.5f, -0.25f, 1, 1, 2, 3});
  for (const bool optimize : {false, true}) expect_same(text, {x, codes(GetParam(), {2, 7})}, optimize);
}

std::string name_of_case(const testing::TestParamInfo<DType>& info) { return std::string(name_of(info.param)); }

INSTANTIATE_TEST_SUITE_P(All, StorageTypes,
                         testing::Values(DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz,
                                         DType::f8e8m0, DType::f4e2m1, DType::i4, DType::u4, DType::i2, DType::u2),
                         name_of_case);

TEST(StorageTypesOfWeights, BecomeFloatsWithOneWarning) {
  Warnings log;
  BuildOptions options = native_options();
  options.log = &log;
  options.traits.arithmetic.integer_products = true;
  const std::string text = R"(graph g {
  input %x: f32[2, 64]
  %w = constant{value=i4[64, 32]{~1}}()
  %s = constant{value=f8e8m0[2, 32]{~2}}()
  %f = dequantize{blocks=[32, 1]}(%w, %s)
  %y = matmul(%x, %f)
  output %y
})";
  BuildReport report;
  ASSERT_TRUE(build_engine(text, options, 2, &report));
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_NE(log.lines[0].find("1 weights of 8-bit floats or of less than 8 bits"), std::string::npos) << log.lines[0];
  ASSERT_EQ(report.regions.size(), 1u);
  EXPECT_EQ(report.regions[0].kind, "kernel");
}

// Scales that passes still have to compute, as importers leave those of channels, are none of the reasons.
TEST(StorageTypesOfWeights, NoneBecomesFloatsWhereScalesOfChannelsAreComputed) {
  Warnings log;
  BuildOptions options = native_options();
  options.log = &log;
  options.traits.arithmetic.integer_products = options.traits.arithmetic.packed_weights = true;
  const std::string text = R"(graph g {
  input %x: f32[2, 64]
  %codes = constant{value=i4[64, 32]{~1}}()
  %s = constant{value=f32[32]{~2}}()
  %dims = constant{value=i64[2]{1, 32}}()
  %scales = reshape(%s, %dims)
  %w = dequantize(%codes, %scales)
  %y = matmul(%x, %w)
  output %y
})";
  ASSERT_TRUE(build_engine(text, options, 2));
  EXPECT_EQ(log.lines, std::vector<std::string>());
}

// Where products take 8-bit floats, weights that are dequantised for them stay, moved or not; those by blocks do not.
TEST(StorageTypesOfWeights, NoneBecomesFloatsWhereItIsMultiplied) {
  const auto warnings_of = [](const std::string& dequantize) {
    Warnings log;
    BuildOptions options = native_options();
    options.log = &log;
    options.traits.arithmetic.integer_products = options.traits.arithmetic.float8_products = true;
    const std::string text = R"(graph g {
  input %q: f8e4m3fn[2, 64]
  %s = constant{value=f32[]{0.5}}()
  %x = dequantize(%q, %s)
  %w = constant{value=f8e4m3fn[32, 64]{~1}}()
  %t = constant{value=f32[32, 2]{~2}}()
  %f = )" + dequantize + R"(
  %v = transpose{perm=[1, 0]}(%f)
  %y = matmul(%x, %v)
  output %y
})";
    EXPECT_TRUE(build_engine(text, options));
    return std::ranges::count_if(log.lines, [](const std::string& line) {
      return line.find("are dequantised while building") != std::string::npos;
    });
  };
  EXPECT_EQ(warnings_of("dequantize(%w, %s)"), 0);
  EXPECT_EQ(warnings_of("dequantize{blocks=[1, 32]}(%w, %t)"), 1);
}

TEST(StorageTypesOfWeights, ReadByEvaluationsLiePacked) {
  BuildOptions options = native_options();
  options.optimize = false;
  const std::shared_ptr<const Engine> engine = build_engine(R"(graph g {
  input %x: f32[2, 64]
  %w = constant{value=i4[64, 33]{~1}}()
  %s = constant{value=f32[]{0.5}}()
  %f = dequantize(%w, %s)
  %y = matmul(%x, %f)
  output %y
})",
                                                            options);
  ASSERT_TRUE(engine);
  bool found = false;
  for (const plan::TensorDesc& tensor : engine->plan().tensors) {
    if (tensor.dtype != DType::i4) continue;
    found = true;
    EXPECT_EQ(engine->plan().constants[tensor.index].bytes, 64u * 33 / 2);
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace lathe
