// SPDX-License-Identifier: Apache-2.0
// Attention that writes new keys and values into its caches, where these are at the end of their room, its code does
// not compile, or somebody looks on. What it computes elsewhere is tests/kernels/cached_attention.graph.
#include "device/cuda/compiled_anew_fixture.h"
#include "fixtures/graph.h"
#include "fixtures/run_engine.h"
#include "fixtures/test_tensor.h"
#include "lowering/build.h"
#include "plan/writer.h"
#include "tuning/backend.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kKeys = 300;

// Halves of queries are added to each other: a step of its own. @ is the type, # the number of queries.
constexpr std::string_view kAttention = R"(
  %pairs = constant{value=i64[5]{0, 0, 0, 2, 16}}()
  %whole = constant{value=i64[4]{0, 0, 0, 32}}()
  %last = constant{value=i64[1]{-1}}()
  %least = constant{value=i64[1]{-9223372036854775808}}()
  %axis = constant{value=i64[1]{3}}()
  %p = reshape(%q, %pairs)
  %back = slice(%p, %last, %least, %axis, %last)
  %sums = elementwise{op=add}(%p, %back)
  %queries = reshape(%sums, %whole)
  %y = attention{scale=0.1}(%queries, %keys_after, %values_after)
  output %y)";
constexpr std::string_view kUpdates = R"(
  input %keys: @[2, 1, 300, 32]
  input %values: @[2, 1, 300, 32]
  input %q: @[2, 2, #, 32]
  input %k: @[2, 1, #, 32]
  input %v: @[2, 1, #, 32]
  input %first: i64[2]
  %keys_after = tensor_scatter{axis=2}(%keys, %k, %first)
  %values_after = tensor_scatter{axis=2}(%values, %v, %first))";

ir::Graph network_of(DType type) {
  std::string text =
      fmt::format("symbol s in [1, 40]{}{}\noutput %keys_after\noutput %values_after\n", kUpdates, kAttention);
  const auto replace = [&](char what, std::string_view by) {
    for (size_t at; (at = text.find(what)) != std::string::npos;) text.replace(at, 1, by);
  };
  replace('@', name_of(type)), replace('#', "s");
  return graph_of(text);
}

constexpr std::string_view kCaches = R"(
  input %keys: f16[2, 2, 300, 32]
  input %values: f16[2, 2, 300, 32]
  input %q: f16[2, 2, 1, 32]
  input %k: f16[2, 2, 1, 32]
  input %v: f16[2, 2, 1, 32]
  input %first: i64[2]
  %zero = constant{value=i64[1]{0}}()
  %one = constant{value=i64[1]{1}}()
  %axis = constant{value=i64[1]{2}}()
)";
constexpr std::string_view kBoth = R"(
  %keys_after = tensor_scatter{axis=2}(%keys, %k, %first)
  %values_after = tensor_scatter{axis=2}(%values, %v, %first)
)";

struct AnyCode final : Compiler {
  Result<std::vector<std::byte>> compile(std::string_view source) override {
    return std::vector<std::byte>(source.size());
  }
};

class InlinedStepsTest : public CompiledAnewTest {
 protected:
  // What the build made of the network; with this compiler for a device that is not there, where one is given.
  std::unique_ptr<BuiltPlan> plan_of(ir::Graph graph, std::vector<ProfileShapes> profiles,
                                     Compiler* compiler = nullptr) {
    Result<BackendBuild> backend = find_backend("cuda")->prepare("cuda", {});
    EXPECT_TRUE(backend) << backend.error().message;
    if (!backend) return nullptr;
    BuildOptions options;
    use_backend(*backend, options);
    if (compiler) options.tuner.compiler = compiler, options.tuner.device = nullptr;
    options.tuner.budget_seconds = 0;
    options.tuner.tf32 = true;
    options.log = options.tuner.log = &log_;
    options.profiles = std::move(profiles);
    Result<std::unique_ptr<BuiltPlan>> built = build_plan(std::move(graph), options);
    EXPECT_TRUE(built) << built.error().message;
    if (!built) return nullptr;
    report_ = (*built)->report;
    return *std::move(built);
  }
  std::unique_ptr<Context> build(ir::Graph graph, std::vector<ProfileShapes> profiles) {
    const std::unique_ptr<BuiltPlan> built = plan_of(std::move(graph), std::move(profiles));
    if (!built) return nullptr;
    auto bytes = std::make_shared<std::vector<std::byte>>(*plan::write_plan(built->plan));
    const auto engine = lathe::Engine::load(*bytes, bytes, {*open_device(0), {}});
    EXPECT_TRUE(engine) << engine.error().message;
    return engine ? *Context::create(*engine) : nullptr;
  }
  // Tuned for one query, and for up to so many.
  static std::vector<ProfileShapes> up_to(int64_t most) {
    ProfileShapes shapes;
    shapes.inputs["q"] = {{2, 2, 1, 32}, {2, 2, 1, 32}, {2, 2, most, 32}};
    shapes.inputs["k"] = shapes.inputs["v"] = {{2, 1, 1, 32}, {2, 1, 1, 32}, {2, 1, most, 32}};
    return {shapes};
  }
  std::unique_ptr<Context> build(int64_t most, DType type = DType::f16) { return build(network_of(type), up_to(most)); }

  // A network of fixed sizes, whose integers are places in caches.
  static std::string text_of(std::string_view lines) {
    return std::string(kCaches) + std::string(lines) + "output %y\noutput %keys_after\noutput %values_after\n";
  }
  // How many of its attentions do the steps before them. Nothing is compiled.
  size_t joined_in(std::string_view lines) {
    EXPECT_TRUE(plan_of(graph_of(text_of(lines)), {}, &any_code_));
    return num_joined();
  }
  // The results are those of the plain evaluation.
  void check(std::string_view lines) {
    const std::string text = text_of(lines);
    const ir::Graph graph = graph_of(text);
    std::mt19937 random(7);
    std::vector<Tensor> inputs;
    for (const ir::Value* input : graph.inputs())
      inputs.push_back(random_tensor(input->dtype(), evaluate_dims(input->shape(), {}), random,
                                     is_integer(input->dtype()) ? Content{Content::between, 0, 2} : Content()));
    const Result<std::vector<Tensor>> wanted = evaluate_widened(graph, inputs);
    ASSERT_TRUE(wanted) << wanted.error().message;
    const std::unique_ptr<Context> context = build(graph_of(text), {});
    ASSERT_TRUE(context);
    const std::vector<Tensor> outputs = run_engine(*context, inputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_EQ(differences(outputs[i], (*wanted)[i], {0.02, 0.02}), "") << text << i;
  }

  static std::vector<Tensor> inputs_of(int64_t queries, std::array<int64_t, 2> first, DType type = DType::f16) {
    std::mt19937 random(7);
    std::vector<Tensor> inputs;
    for (const int64_t rows : {kKeys, kKeys}) inputs.push_back(random_tensor(type, {2, 1, rows, 32}, random));
    inputs.push_back(random_tensor(type, {2, 2, queries, 32}, random));
    for (int i = 0; i < 2; ++i) inputs.push_back(random_tensor(type, {2, 1, queries, 32}, random));
    inputs.push_back(*Tensor::allocate(DType::i64, {2}));
    std::ranges::copy(first, inputs.back().mutable_as<int64_t>());
    return inputs;
  }

  size_t num_attentions() const {
    return static_cast<size_t>(
        std::ranges::count_if(report_.regions, [](const RegionReport& region) { return region.name.ends_with('y'); }));
  }
  // Of the attention and others.
  size_t num_joined() const {
    return static_cast<size_t>(std::ranges::count_if(report_.regions, [](const RegionReport& region) {
      return region.name.find("_after + ") != std::string::npos;
    }));
  }
  const TensorReport& tensor(std::string_view name) const {
    return *std::ranges::find(report_.tensors, name, &TensorReport::name);
  }

  AnyCode any_code_;
  Warnings log_;
  BuildReport report_;
};

// The cache with those new rows that have a place.
Tensor updated(const Tensor& cache, const Tensor& rows, std::span<const int64_t> first) {
  Tensor after = *Tensor::allocate(cache.dtype(), cache.dims());
  std::memcpy(after.mutable_data(), cache.data(), cache.bytes());
  const int64_t count = rows.dims()[2], row_bytes = 32 * static_cast<int64_t>(size_of(rows.dtype()));
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t i = 0; i < count && first[b] >= 0 && first[b] + i < kKeys; ++i)
      std::memcpy(static_cast<std::byte*>(after.mutable_data()) + (b * kKeys + first[b] + i) * row_bytes,
                  static_cast<const std::byte*>(rows.data()) + (b * count + i) * row_bytes, row_bytes);
  return after;
}

Tensor attention_of(const Tensor& q, const Tensor& keys, const Tensor& values) {
  const auto input = [](std::string_view name, const Tensor& tensor) {
    return fmt::format("input %{}: {}[{}]\n", name, name_of(tensor.dtype()), fmt::join(tensor.dims(), ", "));
  };
  const ir::Graph graph =
      graph_of(input("q", q) + input("keys_after", keys) + input("values_after", values) + std::string(kAttention));
  const Tensor inputs[] = {q, keys, values};
  return (*evaluate_widened(graph, inputs))[0];
}

TEST_F(InlinedStepsTest, RowsWithoutAPlaceAreLeftOut) {
  const std::unique_ptr<Context> context = build(3);
  ASSERT_TRUE(context);
  EXPECT_EQ(num_attentions(), 1u);
  EXPECT_EQ(report_.regions.size(), 3u) << "two copies and the attention";
  for (const std::array<int64_t, 2> first : {std::array<int64_t, 2>{299, 298}, {300, -1}, {297, int64_t{1} << 32}}) {
    std::vector<Tensor> inputs = inputs_of(3, first);
    for (int64_t b = 0; b < 2; ++b)  // no numbers in the last row of each entry, unless it has a place
      if (first[b] + 2 >= kKeys)
        std::memset(static_cast<std::byte*>(inputs[4].mutable_data()) + (b * 3 + 2) * 64, 0xff, 64);
    const std::vector<Tensor> outputs = run_engine(*context, inputs);
    const Tensor keys = updated(inputs[0], inputs[3], first), values = updated(inputs[1], inputs[4], first);
    EXPECT_EQ(differing_bits(outputs[1], keys), "") << first[0];
    EXPECT_EQ(differing_bits(outputs[2], values), "") << first[0];
    EXPECT_EQ(differences(outputs[0], attention_of(inputs[2], keys, values), {0.01, 0.01}), "") << first[0];
  }
}

// New rows are f32 in the caches, and TF32 in the products of the same launch.
TEST_F(InlinedStepsTest, Tf32) {
  const std::unique_ptr<Context> context = build(3, DType::f32);
  ASSERT_TRUE(context);
  EXPECT_EQ(report_.regions.size(), 3u) << "two copies and the attention";
  constexpr std::array<int64_t, 2> kFirst = {297, 0};
  const std::vector<Tensor> inputs = inputs_of(3, kFirst, DType::f32), outputs = run_engine(*context, inputs);
  const Tensor keys = updated(inputs[0], inputs[3], kFirst), values = updated(inputs[1], inputs[4], kFirst);
  EXPECT_EQ(differing_bits(outputs[1], keys), "");
  EXPECT_EQ(differing_bits(outputs[2], values), "");
  EXPECT_EQ(differences(outputs[0], attention_of(inputs[2], keys, values), {0.005, 0.005}), "");
}

TEST_F(InlinedStepsTest, CodeThatDoesNotCompile) {
  setenv("FAKE_NVRTC_FAULT", "crash:Updated<", 1);
  const std::unique_ptr<Context> context = build(40);
  ASSERT_TRUE(context);
  EXPECT_GT(report_.regions.size(), 3u);
  ASSERT_EQ(log_.lines.size(), 1u) << testing::PrintToString(log_.lines);
  EXPECT_NE(log_.lines[0].find("signal 11"), std::string::npos) << log_.lines[0];
  const auto attention = std::ranges::find(report_.regions, "y", &RegionReport::name);
  ASSERT_NE(attention, report_.regions.end());
  EXPECT_NE(testing::PrintToString(attention->refusals).find("one step with those before it"), std::string::npos);
  const std::vector<Tensor> inputs = inputs_of(1, {5, 299});
  const std::vector<Tensor> outputs = run_engine(*context, inputs);
  const Tensor keys = updated(inputs[0], inputs[3], std::array<int64_t, 2>{5, 299});
  EXPECT_EQ(differing_bits(outputs[1], keys), "");
}

TEST_F(InlinedStepsTest, NobodyIsShownWhatNoStepWrites) {
  const std::unique_ptr<Context> context = build(40);
  ASSERT_TRUE(context);
  EXPECT_EQ(num_attentions(), 2u) << "one for few queries, one for many";
  std::multiset<std::string> shown;
  context->hooks.observer = [&](const plan::TensorDesc& tensor, const Tensor&) -> Result<> {
    shown.insert(tensor.name);
    return {};
  };
  run_engine(*context, inputs_of(1, {5, 299}));
  EXPECT_EQ(shown.count("sums"), 0u);
  EXPECT_EQ(shown.count("y"), 1u);
  shown.clear();
  run_engine(*context, inputs_of(40, {0, 0}));
  EXPECT_EQ(shown.count("sums"), 1u);
  EXPECT_EQ(shown.count("y"), 1u);
  EXPECT_NE(tensor("queries").why.find("for sizes at which that runs"), std::string::npos) << tensor("queries").why;
}

TEST_F(InlinedStepsTest, QueriesAreInNoMemory) {
  ASSERT_TRUE(plan_of(network_of(DType::f16), up_to(1), &any_code_));
  EXPECT_EQ(tensor("queries").layout, "");
  EXPECT_NE(tensor("queries").why.find("never in memory"), std::string::npos) << tensor("queries").why;
  const auto attention = std::ranges::find_if(report_.regions, [](const auto& r) { return r.kind == "kernel"; });
  EXPECT_EQ(attention->microseconds, 0) << "nobody has measured it";
}

// What a launch of all would read before, or after, it has written it; queries that are wanted in memory; caches that
// begin anew, which take rows at several places; 134 heads of keys for 132 multiprocessors.
TEST_F(InlinedStepsTest, StepsThatStay) {
  const std::string both(kBoth);
  const std::string networks[] = {both + R"(
        %some = slice(%keys_after, %zero, %one, %axis)
        %sum = elementwise{op=add}(%some, %q)
        %y = attention{scale=0.2}(%sum, %keys_after, %values_after)
      )",
                                  R"(
        %keys_after = tensor_scatter{axis=2}(%keys, %k, %first)
        %some = slice(%keys_after, %zero, %one, %axis)
        %sum = elementwise{op=add}(%some, %v)
        %values_after = tensor_scatter{axis=2}(%values, %sum, %first)
        %y = attention{scale=0.2}(%q, %keys_after, %values_after)
      )",
                                  both + R"(
        %zeros = constant{value=i64[2]{0, 0}}()
        %ones = constant{value=i64[2]{1, 1}}()
        %axes = constant{value=i64[2]{1, 3}}()
        %some = slice(%keys_after, %zeros, %ones, %axes)
        %bias = transpose{perm=[0, 1, 3, 2]}(%some)
        %y = attention{scale=0.2}(%q, %keys_after, %values_after, %bias)
      )",
                                  both + R"(
        %some = slice(%values_after, %zero, %one, %axis)
        %z = attention{scale=0.2}(%q, %keys_after, %values_after)
        %y = elementwise{op=add}(%z, %some)
      )",
                                  both + R"(
        %mean = reduce{op=mean, axes=[2]}(%keys_after)
        %y = attention{scale=0.2}(%mean, %keys_after, %values_after)
      )",
                                  both + R"(
        %queries = activation{op=tanh}(%q)
        %y = attention{scale=0.2}(%queries, %keys_after, %values_after)
        output %queries
      )",
                                  R"(
        %keys_after = tensor_scatter{axis=2, circular=true}(%keys, %k, %first)
        %values_after = tensor_scatter{axis=2, circular=true}(%values, %v, %first)
        %y = attention{scale=0.2}(%q, %keys_after, %values_after)
      )",
                                  R"(
        input %many_keys: f16[67, 2, 300, 32]
        input %many_values: f16[67, 2, 300, 32]
        input %many: f16[67, 2, 1, 32]
        input %places: i64[67]
        %keys_after = tensor_scatter{axis=2}(%many_keys, %many, %places)
        %values_after = tensor_scatter{axis=2}(%many_values, %many, %places)
        %y = attention{scale=0.2}(%many, %keys_after, %values_after)
      )"};
  for (const std::string& network : networks) EXPECT_EQ(joined_in(network), 0u) << network;
  EXPECT_EQ(joined_in(both + "%y = attention{scale=0.2}(%q, %keys_after, %values_after)\n"), 1u);
}

// The rows of the keys are read from the cache before. Texts that see no key have the mean of all values, among them
// new ones as the cache holds them.
TEST_F(InlinedStepsTest, GatheredRowsWhereNoKeyIsSeen) {
  check(R"(
    input %from: i64[1]
    input %number: f16[2, 1, 1, 300]
    %most = constant{value=f16[]{9}}()
    %seen = elementwise{op=greater}(%number, %most)
    %row = gather{axis=2}(%keys, %from)
    %rows = activation{op=tanh}(%v)
    %keys_after = tensor_scatter{axis=2}(%keys, %row, %first)
    %values_after = tensor_scatter{axis=2}(%values, %rows, %first)
    %y = attention{scale=0.2, mean_for_none=true}(%q, %keys_after, %values_after, %seen)
  )");
  EXPECT_EQ(num_joined(), 1u);
}

// Three queries of six heads for each of keys are more rows than a tile has. Keys are hidden by a number that has
// weight where no other key is seen.
TEST_F(InlinedStepsTest, TilesOfRowsWithHiddenKeys) {
  check(R"(
    input %wide_keys: f16[1, 1, 300, 128]
    input %wide_values: f16[1, 1, 300, 128]
    input %six: f16[1, 6, 3, 128]
    input %new: f16[1, 1, 3, 128]
    input %place: i64[1]
    input %number: f16[1, 1, 3, 300]
    %most = constant{value=f16[]{9}}()
    %seen = elementwise{op=greater}(%number, %most)
    %keys_after = tensor_scatter{axis=2}(%wide_keys, %new, %place)
    %values_after = tensor_scatter{axis=2}(%wide_values, %new, %place)
    %y = attention{scale=0.1, hidden=-20}(%six, %keys_after, %values_after, %seen)
  )");
  EXPECT_EQ(num_joined(), 1u);
}

// The second attention reads what the first one writes, whose queries nothing computes.
TEST_F(InlinedStepsTest, CachesThatTwoRead) {
  check(std::string(kBoth) + R"(
    %z = attention{scale=0.2}(%q, %keys_after, %values_after)
    %y = attention{scale=0.1}(%z, %keys_after, %values_after)
  )");
  EXPECT_EQ(num_joined(), 1u);
}

}  // namespace
}  // namespace lathe::cuda
