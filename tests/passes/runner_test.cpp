// SPDX-License-Identifier: Apache-2.0
// What the runner of passes tells those who look for the pass that is to blame.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "passes/pass.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

// x -> identity -> multiplied by a constant of `elements` elements -> y
ir::Graph small_graph(int64_t elements) {
  ir::Graph graph;
  ir::Value* x = *graph.add_input("x", DType::f32, Dims{elements});
  ir::Value* same = *graph.add_value(IdentityAttrs(), {x});
  ConstantAttrs weights;
  weights.value = Tensor::from<float>({elements}, std::vector<float>(static_cast<size_t>(elements), 2.5F));
  ElementwiseAttrs product;
  product.op = ElementwiseOp::mul;
  ir::Value* y = *graph.add_value(product, {same, *graph.add_value(weights, {})});
  graph.add_output(y, "y");
  return graph;
}

Result<bool> fails(ir::Graph& graph, PassContext&) {
  ir::Value* input = graph.inputs()[0];
  LATHE_ASSIGN(ir::Value * extra, graph.add_value(IdentityAttrs(), {input}));
  graph.add_output(extra, "extra");
  return fail(ErrorCode::graph_invalid, "on purpose");
}

Result<bool> lies(ir::Graph&, PassContext&) { return true; }

class Dump : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "runner_test";
    fs::remove_all(folder_);
    context_.dump_directory = folder_;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename());
    return names;
  }
  std::string text(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }

  fs::path folder_;
  PassContext context_;
};

const PassRow* row_of(std::string_view name) {
  for (const PassRow& row : recipe())
    if (row.name == name) return &row;
  return nullptr;
}

TEST_F(Dump, HoldsTheGraphAfterEachPassThatChangedIt) {
  ir::Graph graph = small_graph(4);
  const std::string before = ir::to_text(graph);
  ASSERT_TRUE(run_passes(graph, context_));
  const std::set<std::string> names = files();
  ASSERT_GE(names.size(), 2u);
  EXPECT_EQ(text("000_before.graph"), before);
  EXPECT_TRUE(names.contains("001_eliminate_identities.graph"));
  EXPECT_EQ(text(*names.rbegin()), ir::to_text(graph));
}

TEST_F(Dump, ClearsItsFolderOfEarlierDumpsAlone) {
  fs::create_directories(folder_);
  for (const char* name : {"007_fold_affine.graph", "notes.txt", "1_mine.graph", "0001_mine.graph"})
    std::ofstream(folder_ / name) << "text";
  ir::Graph graph = small_graph(4);
  ASSERT_TRUE(run_passes(graph, context_, {}));
  EXPECT_EQ(files(), (std::set<std::string>{"000_before.graph", "0001_mine.graph", "1_mine.graph", "notes.txt"}));
}

TEST_F(Dump, HoldsWhatAFailingPassWasGiven) {
  const PassRow rows[] = {*row_of("eliminate_identities"), {"fails", fails}};
  ir::Graph graph = small_graph(100);
  const Result<std::vector<PassReport>> reports = run_passes(graph, context_, rows);
  ASSERT_FALSE(reports);
  const std::string path = folder_ / "002_fails_failed.graph";
  EXPECT_EQ(reports.error().message, fmt::format("pass fails: on purpose (what the pass was given is in '{}')", path));
  const Result<ir::Graph> given = ir::parse_graph(text("002_fails_failed.graph"));
  ASSERT_TRUE(given) << given.error().message;  // its constant is there, the others only have digests of theirs
  EXPECT_EQ(ir::to_text(*given), ir::to_text(graph));
  EXPECT_EQ(graph.outputs().size(), 1u) << "the graph is what the failing pass was given";
  EXPECT_NE(text("000_before.graph").find("{#"), std::string::npos);
}

TEST_F(Dump, VerifiesWhatPassesSay) {
  const PassRow rows[] = {{"lies", lies}};
  ir::Graph graph = small_graph(4);
  const Result<std::vector<PassReport>> reports = run_passes(graph, context_, rows);
  ASSERT_FALSE(reports);
  EXPECT_NE(reports.error().message.find("pass lies: said 'changed'"), std::string::npos) << reports.error().message;
  EXPECT_TRUE(files().contains("001_lies_failed.graph"));
}

TEST_F(Dump, FailsWhereItCannotWrite) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "text";
  context_.dump_directory = folder_ / "file";
  ir::Graph graph = small_graph(4);
  const Result<std::vector<PassReport>> reports = run_passes(graph, context_);
  ASSERT_FALSE(reports);
  EXPECT_EQ(reports.error().code, ErrorCode::file_read);
}

}  // namespace
}  // namespace lathe
