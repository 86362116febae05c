// SPDX-License-Identifier: Apache-2.0
// Every allocation on the way from the bytes of a model to its graph may fail.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "onnx/checker.h"
#include "onnx/import.h"
#include "onnx/model_bytes.h"
#include "robustness/allocation_sweep.h"

namespace lathe::onnx {
namespace {

namespace fs = std::filesystem;

bool import(const Result<Model>& model) {
  if (!model || !check_model(*model)) return false;
  ir::Graph graph;
  return import_model(*model, graph).has_value();
}

// Initializers in raw and typed fields, attributes, a symbolic dimension, and two branches that are both imported.
TEST(OnnxAllocationFailure, ModelWithInitializersAndBranches) {
  const std::string bytes = small_model();
  EXPECT_GT(sweep_allocations([&] { return import(read_model(bytes_of(bytes))); }), 200);
}

TEST(OnnxAllocationFailure, Functions) {
  const std::string function = message([](Writer& w) {
    w.add_string(1, "Twice"), w.add_string(4, "a"), w.add_string(5, "b"), w.add_string(10, "f");
    w.add_message(7, node("Relu", {"a"}, {"t"}));
    w.add_message(7, node("Add", {"t", "t"}, {"b"}));
    w.add_message(9, opset(16));
  });
  const std::string bytes = model(graph({{node("Twice", {"x"}, {"m"}, {}, "f"), node("Twice", {"m"}, {"y"}, {}, "f")},
                                         {},
                                         {value_info("x", 1, {2, 2})},
                                         {value_info("y", 1, {2, 2})}}),
                                  10, {opset(21), opset(1, "f")}, {function});
  EXPECT_GT(sweep_allocations([&] { return import(read_model(bytes_of(bytes))); }), 100);
}

// The list of problems is itself allocated: whatever fails, the model is refused.
TEST(OnnxAllocationFailure, RefusalOfAModelWithProblems) {
  const std::string bytes =
      model(graph({{node("Frobnicate", {"x"}, {"a"}), node("Mod", {"x", "x"}, {"b"}), node("Add", {"a", "b"}, {"y"})},
                   {},
                   {value_info("x", 1, {2, 2})},
                   {value_info("y", 1, {2, 2})}}));
  EXPECT_GT(sweep_allocations([&] { return !import(read_model(bytes_of(bytes))); }), 50);
}

TEST(OnnxAllocationFailure, ExternalDataBesideAFile) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("lathe-allocation-{}", ::getpid());
  fs::create_directories(folder);
  const std::string tensor = message([](Writer& w) {
    w.add_int64(1, 4), w.add_int32(2, 1), w.add_string(8, "w"), w.add_int32(14, 1);
    w.add_message(13, message([&](Writer& e) { e.add_string(1, "location"), e.add_string(2, "weights"); }));
  });
  const std::string bytes = model(
      graph({{node("Add", {"x", "w"}, {"y"})}, {tensor}, {value_info("x", 1, {2, 4})}, {value_info("y", 1, {2, 4})}}));
  std::ofstream(folder / "weights") << "0123456789abcdef";
  std::ofstream(folder / "m.onnx") << bytes;
  const std::string path = folder / "m.onnx";
  EXPECT_GT(sweep_allocations([&] { return import(read_model_file(path)); }), 100);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace lathe::onnx
