// SPDX-License-Identifier: Apache-2.0
// Runs every tests/passes/<pass>.graph file: a list of blocks
//   # comment
//   strict                (optional: without fast_math)
//   wide                  (optional: there are no kernels for 16-bit floats; results then agree to their rounding)
//   bf16                  (optional, with `wide`: kernels gain by factors that are rounded to bf16)
//   integers              (optional: there are kernels that multiply 8-bit integers)
//   pairs                 (optional: there are kernels that finish neighbouring columns together)
//   packed                (optional: there are kernels that read weights of 4 and 8 bits)
//   float8                (optional: there are kernels that multiply 8-bit floats)
//   coarse                (optional: weights of attention become 8-bit floats; results agree to such roundings of them)
//   pin <layer> f16       (optional, any number of times: what a layer computes in)
//   precision f16         (optional: what f32 may be narrowed to; results then agree to its rounding)
//   before graph g { ... }
//   after graph g { ... } (or: unchanged)
// The pass must turn the first graph into the second (value names and the order of independent nodes do not matter),
// keep names and types of inputs and outputs, and leave the results on random inputs as they were.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "chosen_case.h"
#include "fixtures/test_tensor.h"
#include "ir/interpret.h"
#include "passes/pass.h"
#include "source_dir.h"

namespace lathe {
namespace {

struct Block {
  int line = 0;
  bool strict = false;
  bool unchanged = false;
  bool integers = false;
  bool float8 = false;
  bool coarse = false;
  bool weights = false;  // products of integers are those of CPUs
  bool wide = false;
  bool bf16 = false;
  bool pairs = false;
  bool packed = false;
  DType precision = DType::f32;
  std::vector<PrecisionPin> pins;

  // What does not change results.
  Arithmetic arithmetic() const {
    Arithmetic arithmetic;
    arithmetic.integer_products = integers || weights;
    arithmetic.float8_products = float8;
    arithmetic.float8_block = float8 ? 128 : 0;
    arithmetic.weighted_products = weights;
    arithmetic.paired_columns = pairs;
    arithmetic.packed_weights = packed;
    return arithmetic;
  }

  PassContext context() const {
    PassContext context;
    context.fast_math = !strict;
    context.precision = precision;
    context.arithmetic = arithmetic();
    context.arithmetic.narrow_floats = !wide;
    context.arithmetic.bf16_factors = bf16;
    context.pins = pins;
    return context;
  }
  // The types whose rounding the result may show.
  DType coarsest() const {
    if (coarse) return DType::f8e4m3fn;
    DType coarsest = wide ? DType::bf16 : precision;
    for (const PrecisionPin& pin : pins)
      if (pin.precision == DType::f16 && coarsest == DType::f32)
        coarsest = DType::f16;
      else if (pin.precision == DType::bf16)
        coarsest = DType::bf16;
    return coarsest;
  }
  std::string before, after;
};

std::vector<Block> read_blocks(const std::string& path) {
  std::ifstream file(path);
  std::vector<Block> blocks;
  std::string* target = nullptr;
  Block next;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    if (text.starts_with('#') || text.empty()) continue;
    std::istringstream words(text);
    std::string word;
    words >> word;
    if (word == "strict") {
      next.strict = true;
    } else if (word == "integers") {
      next.integers = true;
    } else if (word == "float8") {
      next.float8 = true;
    } else if (word == "coarse") {
      next.coarse = true;
    } else if (word == "weights") {
      next.weights = true;
    } else if (word == "pairs") {
      next.pairs = true;
    } else if (word == "packed") {
      next.packed = true;
    } else if (word == "wide") {
      next.wide = true;
    } else if (word == "bf16") {
      next.bf16 = true;
    } else if (word == "pin") {
      std::string type;
      words >> word >> type;
      next.pins.push_back({word, *dtype_from_name(type), {}});
    } else if (word == "precision") {
      words >> word;
      next.precision = *dtype_from_name(word);
    } else if (word == "before") {
      next.line = number;
      next.before = text.substr(6) + "\n";
      blocks.push_back(std::exchange(next, Block()));
      target = &blocks.back().before;
    } else if (word == "after") {
      blocks.back().after = text.substr(5) + "\n";
      target = &blocks.back().after;
    } else if (word == "unchanged") {
      blocks.back().unchanged = true;
      target = nullptr;
    } else if (target) {
      *target += text + "\n";
    }
  }
  return blocks;
}

// The expression tree under each output, one line a node, numbered in order of first use.
class Canonical {
 public:
  explicit Canonical(const ir::Graph& graph) : graph_(graph) {
    for (const ir::Value* input : graph.inputs())
      text_ += "input " + visit(*input) + ": " + ir::to_string(input->type(), graph) + "\n";
    for (const ir::Output& output : graph.outputs()) {
      const std::string value = visit(*output.value);
      text_ += "output " + value + " \"" + output.name + "\"\n";
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string visit(const ir::Value& value) {
    if (!value.producer()) return "%" + value.name();
    const auto known = numbers_.find(value.producer());
    if (known == numbers_.end()) print(*value.producer());
    return fmt::format("%{}.{}", numbers_.at(value.producer()), value.index());
  }

  void print(const ir::Node& node) {
    std::string operands, types;
    for (const ir::Value* input : node.inputs())
      operands += (operands.empty() ? "" : ", ") + (input ? visit(*input) : std::string("_"));
    for (size_t i = 0; i < node.num_outputs(); ++i)
      types += (i ? ", " : "") + ir::to_string(node.output(i)->type(), graph_);
    const size_t number = numbers_.size();
    numbers_.emplace(&node, number);
    text_ += fmt::format("%{} = {}{}({}): {}\n", number, node.info().name, to_text(node.attributes()), operands, types);
  }

  const ir::Graph& graph_;
  std::map<const ir::Node*, size_t> numbers_;
  std::string text_;
};

// Few, because blocks use them as indices.
constexpr Content kIntegers{Content::between, 0, 2};

std::vector<Tensor> random_inputs(const ir::Graph& graph, std::mt19937& generator) {
  std::vector<int64_t> values;
  for (const Symbol& symbol : graph.symbols())
    values.push_back(
        std::min(symbol.range.max, std::max<int64_t>(symbol.range.min, 2 + static_cast<int64_t>(generator() % 4))));
  std::vector<Tensor> inputs;
  for (const ir::Value* input : graph.inputs()) {
    Dims dims;
    for (const Expr& dim : input->shape()) dims.push_back(*dim.evaluate(values));
    inputs.push_back(
        random_tensor(input->dtype(), dims, generator, is_floating(input->dtype()) ? Content() : kIntegers));
  }
  return inputs;
}

double rounding_of(DType type) {
  return type == DType::f16 ? 4e-3 : type == DType::bf16 ? 3e-2 : type == DType::f8e4m3fn ? 0x1p-4 : 2e-4;
}

void expect_near(const Tensor& got, const Tensor& want, DType precision, const std::string& name) {
  ASSERT_EQ(got.dtype(), want.dtype()) << name;
  ASSERT_EQ(got.dims(), want.dims()) << name;
  const double tolerance = std::max(rounding_of(want.dtype()), rounding_of(precision));
  for (int64_t i = 0; i < got.volume(); ++i) {
    const double g = got.at_double(i), w = want.at_double(i);
    if (std::isnan(w) ? std::isnan(g) : g == w || std::fabs(g - w) <= tolerance * (1 + std::fabs(w))) continue;
    FAIL() << name << "[" << i << "] is " << g << ", was " << w;
  }
}

void expect_equivalent(const ir::Graph& before, const ir::Graph& after, DType precision) {
  std::mt19937 generator(7);
  for (int round = 0; round < 2; ++round) {
    const std::vector<Tensor> inputs = random_inputs(before, generator);
    const auto want = ir::interpret(before, inputs), got = ir::interpret(after, inputs);
    ASSERT_TRUE(want) << want.error().message;
    ASSERT_TRUE(got) << got.error().message;
    for (size_t i = 0; i < want->size(); ++i) expect_near((*got)[i], (*want)[i], precision, before.outputs()[i].name);
  }
}

void run_block(const std::string& pass, const Block& block) {
  Result<ir::Graph> graph = ir::parse_graph(block.before);
  ASSERT_TRUE(graph) << graph.error().message;
  const ir::Graph before = graph->clone();
  PassContext context = block.context();
  const Result<bool> changed = run_pass(pass, *graph, context);
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(*changed, !block.unchanged) << ir::to_text(*graph, 16);
  expect_equivalent(before, *graph, block.coarsest());
  if (block.unchanged) return;
  const Result<ir::Graph> after = ir::parse_graph(block.after);
  ASSERT_TRUE(after) << after.error().message << "\ngot\n" << ir::to_text(*graph, 16);
  EXPECT_EQ(Canonical(*graph).text(), Canonical(*after).text());
}

std::vector<std::string> graph_files() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("/tests/passes")))
    if (entry.path().extension() == ".graph") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

class Passes : public testing::TestWithParam<std::string> {};

TEST_P(Passes, Hold) {
  const std::vector<Block> blocks = read_blocks(GetParam());
  EXPECT_FALSE(blocks.empty());
  for (const Block& block : chosen_cases(blocks)) {
    SCOPED_TRACE(fmt::format("{}:{}", GetParam(), block.line));
    run_block(std::filesystem::path(GetParam()).stem().string(), block);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Passes, testing::ValuesIn(graph_files()),
                         [](const auto& info) { return std::filesystem::path(info.param).stem().string(); });

// Every graph of the files above through the whole recipe.
TEST(Recipe, KeepsEveryGraph) {
  for (const std::string& path : graph_files())
    for (const Block& block : read_blocks(path)) {
      SCOPED_TRACE(fmt::format("{}:{}", path, block.line));
      Result<ir::Graph> graph = ir::parse_graph(block.before);
      ASSERT_TRUE(graph) << graph.error().message;
      const ir::Graph before = graph->clone();
      PassContext context;
      context.verify = true;
      context.arithmetic = block.arithmetic();
      const auto reports = run_passes(*graph, context);
      ASSERT_TRUE(reports) << reports.error().message;
      for (size_t i = 0; i < before.inputs().size(); ++i)
        EXPECT_EQ(graph->inputs()[i]->name(), before.inputs()[i]->name());
      for (size_t i = 0; i < before.outputs().size(); ++i)
        EXPECT_EQ(graph->outputs()[i].name, before.outputs()[i].name);
      expect_equivalent(before, *graph, block.coarse ? block.coarsest() : block.precision);
      for (std::string_view pass : pass_names()) {
        const Result<bool> again = run_pass(pass, *graph, context);
        ASSERT_TRUE(again) << again.error().message;
        EXPECT_FALSE(*again) << pass << " finds more to do after the recipe has settled";
      }
    }
}

TEST(Recipe, SkipsByNameAndRefusesUnknownNames) {
  ir::Graph graph;
  ir::Value* x = *graph.add_input("x", DType::f32, Dims{2});
  ir::Value* y = *graph.add_value(IdentityAttrs(), {x});
  ir::Value* z = *graph.add_value(IdentityAttrs(), {y});
  graph.add_output(z, "z");
  PassContext context;
  context.skip = {"eliminate_identities"};
  ASSERT_TRUE(run_passes(graph, context));
  EXPECT_EQ(graph.num_nodes(), 2u);
  const Result<bool> unknown = run_pass("no_such_pass", graph, context);
  ASSERT_FALSE(unknown);
  for (std::string_view pass : pass_names())
    EXPECT_NE(unknown.error().message.find(pass), std::string::npos) << unknown.error().message;
  context.skip.clear();
  ASSERT_TRUE(run_passes(graph, context));
  EXPECT_EQ(graph.num_nodes(), 1u);  // an output keeps a value of its own
}

}  // namespace
}  // namespace lathe
