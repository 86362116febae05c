// SPDX-License-Identifier: Apache-2.0
// Networks that only move elements, as the CPU's plans: no step of them is an evaluation, but for maps that are not
// linear, and all give what the plain evaluation gives.
#include "indexing/movement_chains.h"
#include "lowering/engine_fixture.h"

namespace lathe {
namespace {

Tensor counted(DType dtype, const Dims& dims) {
  Tensor tensor = *Tensor::allocate(dtype, dims);
  for (int64_t i = 0; i < tensor.volume(); ++i) {
    const auto value = static_cast<double>(i % 100);
    write_doubles({&value, 1}, i, tensor);
  }
  return tensor;
}

TEST(Movement, ChainsAreCopiesOfWindows) {
  const DType dtypes[] = {DType::f32, DType::f16, DType::i64, DType::f64, DType::u8};
  int ran = 0, evaluated = 0, steps = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    const DType dtype = dtypes[seed % 5];
    const ir::Graph graph = MovementChains(seed).make(dtype);
    BuildReport report;
    const std::shared_ptr<const Engine> engine = build_engine(ir::to_text(graph), native_options(), 2, &report);
    ASSERT_TRUE(engine) << ir::to_text(graph);
    for (const RegionReport& region : report.regions) evaluated += region.kind == "eval", ++steps;
    for (const std::array<int64_t, 2>& sizes : kChainSizes) {
      const std::vector<int64_t> symbols = symbols_of_chain(graph, sizes);
      Dims dims;
      for (const Expr& dim : graph.inputs()[0]->shape()) dims.push_back(*dim.evaluate(symbols));
      const Tensor input = counted(dtype, dims);
      const Result<std::vector<Tensor>> expected = ir::interpret(graph, std::span(&input, 1));
      if (!expected) continue;
      const std::unique_ptr<Context> context = *Context::create(engine);
      const std::vector<Tensor> got = run_engine(*context, std::span(&input, 1));
      ASSERT_EQ(got.size(), 1u);
      ASSERT_EQ(got[0].dims(), (*expected)[0].dims());
      ASSERT_TRUE(std::memcmp(got[0].data(), (*expected)[0].data(), got[0].bytes()) == 0)
          << "seed " << seed << ", sizes " << sizes[0] << " " << sizes[1] << "\n"
          << ir::to_text(graph);
      ++ran;
    }
  }
  EXPECT_GT(ran, 300);
  EXPECT_LT(evaluated, steps / 8) << steps;
}

// Heads that are split off and put together again: products read and write them where they lie.
// Products and a softmax, or an attention, which reads heads where they lie just as well.
TEST(Movement, HeadsAreNoSteps) {
  for (const auto& [axis, steps] : {std::pair{2, size_t{3}}, std::pair{3, size_t{1}}}) {
    const std::string text = fmt::format(R"(graph "heads" {{
      symbol n in [1, 4]
      symbol t in [1, 9]
      input %q: f32[n, t, 4, 8]
      input %k: f32[n, t, 4, 8]
      input %v: f32[n, t, 4, 8]
      %qt = transpose{{perm=[0, 2, 1, 3]}}(%q)
      %kt = transpose{{perm=[0, 2, 3, 1]}}(%k)
      %vt = transpose{{perm=[0, 2, 1, 3]}}(%v)
      %s = matmul(%qt, %kt)
      %p = softmax{{axis={}}}(%s)
      %y = matmul(%p, %vt)
      %z = transpose{{perm=[0, 2, 1, 3]}}(%y)
      output %z "z"
    }})",
                                         axis);
    BuildReport report;
    const std::shared_ptr<const Engine> engine = build_engine(text, native_options(), 2, &report);
    ASSERT_TRUE(engine);
    EXPECT_EQ(report.regions.size(), steps);
    const ir::Graph graph = *ir::parse_graph(text);
    for (const Dims& sizes : {Dims{1, 1}, Dims{2, 5}, Dims{4, 9}}) {
      std::vector<Tensor> inputs;
      for (uint32_t i = 0; i < 3; ++i) inputs.push_back(random_tensor(DType::f32, {sizes[0], sizes[1], 4, 8}, i));
      const std::unique_ptr<Context> context = *Context::create(engine);
      expect_close(run_engine(*context, inputs)[0], (*ir::interpret(graph, inputs))[0], 1e-5);
    }
  }
}

// Maps that no access, no copy or no view stands for.
TEST(Movement, EdgesOfMaps) {
  const char* const bodies[] = {
      R"(%at = constant{value=i64[1]{9223372036854775807}}()
         %axis = constant{value=i64[1]{1}}()
         %step = constant{value=i64[1]{3}}()
         %y = slice(%x, %at, %at, %axis, %step))",    // of nothing, far behind the end
      R"(%at = constant{value=i64[1]{7}}()
         %axis = constant{value=i64[1]{0}}()
         %step = constant{value=i64[1]{9223372036854775807}}()
         %y = slice(%x, %at, %step, %axis, %step))",  // strides that no Expr holds
      R"(%zero = constant{value=i64[1]{0}}()
         %one = constant{value=i64[1]{1}}()
         %shape = shape(%x)
         %n = slice(%shape, %zero, %one, %zero)
         %row = constant{value=f32[1, 4]{1, 2, 3, 4}}()
         %r = elementwise{op=add}(%row, %four)
         %head = slice(%r, %zero, %n, %zero)
         %rest = slice(%r, %n, %one, %zero)
         %y = concat(%rest, %head))",                 // the only row is in one part or in the other
      R"(%zero = constant{value=i64[1]{0}}()
         %one = constant{value=i64[1]{1}}()
         %none = slice(%x, %zero, %zero, %one)
         %pads = constant{value=i64[4]{0, 1, 0, 0}}()
         %y = pad(%none, %pads))",                    // an axis of one element, which is padding
      R"(%starts = constant{value=i64[2]{-1, -1}}()
         %ends = constant{value=i64[2]{-100, -100}}()
         %axes = constant{value=i64[2]{0, 1}}()
         %steps = constant{value=i64[2]{-1, -1}}()
         %z = slice(%x, %starts, %ends, %axes, %steps)
         %y = elementwise{op=mul}(%z, %four))",       // backwards
  };
  for (const char* body : bodies)
    for (const bool fuse_movement : {false, true}) {
      const std::string text =
          fmt::format("graph \"g\" {{\ninput %x: f32[n, 4]\ninput %four: f32[4]\n{}\noutput %y\n}}", body);
      const Result<ir::Graph> graph = ir::parse_graph(text);
      ASSERT_TRUE(graph) << graph.error().to_string();
      BuildOptions options = native_options();
      options.traits.fuses_movement = fuse_movement;
      const std::shared_ptr<const Engine> engine = build_engine(text, options);
      ASSERT_TRUE(engine) << text;
      for (const int64_t n : {0, 1, 6}) {
        const Tensor inputs[] = {counted(DType::f32, {n, 4}), counted(DType::f32, {4})};
        const Result<std::vector<Tensor>> expected = ir::interpret(*graph, inputs);
        ASSERT_TRUE(expected) << expected.error().to_string();
        const std::unique_ptr<Context> context = *Context::create(engine);
        const std::vector<Tensor> got = run_engine(*context, inputs);
        expect_close(got[0], (*expected)[0], 0);
      }
    }
}

}  // namespace
}  // namespace lathe
