// SPDX-License-Identifier: Apache-2.0
// Models as bytes to graphs, and what these compute.
#pragma once

#include <gtest/gtest.h>

#include "ir/interpret.h"
#include "onnx/import.h"
#include "onnx/model_bytes.h"

namespace lathe::onnx {

struct Imported {
  Result<ImportReport> report = fail(ErrorCode::internal, "not read");
  ir::Graph graph;
};

inline Imported import(const std::string& bytes, const ImportOptions& options = {}) {
  Imported result;
  Result<Model> model = read_model(bytes_of(bytes));
  if (model)
    result.report = import_model(*model, result.graph, options);
  else
    result.report = fail(model.error());
  return result;
}

inline std::string problems(const Imported& imported) {
  if (imported.report) return "";
  if (imported.report.error().notes.empty()) return imported.report.error().message + "\n";
  std::string text;
  for (const Error& note : imported.report.error().notes) text += note.message + "\n";
  return text;
}

// The single f32 output for one f32 input.
inline std::vector<float> evaluate(const Imported& imported, Dims dims, std::vector<float> x) {
  EXPECT_EQ(problems(imported), "");
  if (!imported.report) return {};
  const Tensor input = Tensor::from<float>(std::move(dims), x);
  const auto outputs = ir::interpret(imported.graph, std::span(&input, 1));
  EXPECT_TRUE(outputs) << outputs.error().to_string();
  if (!outputs) return {};
  return {(*outputs)[0].as<float>(), (*outputs)[0].as<float>() + (*outputs)[0].volume()};
}

inline const std::string kX = value_info("x", 1, {2, 2});
inline const std::string kY = value_info("y", 1, {2, 2});

// One node over x of these dims, at this version of the operator set; the output's declared dims do not matter.
inline std::vector<float> run_node(int64_t version, const std::string& node, Dims dims, std::vector<float> x,
                                   std::vector<std::string> initializers = {}) {
  const std::string input = message([&](Writer& w) {
    const std::string shape = message([&](Writer& s) {
      for (const int64_t dim : dims) s.add_message(1, message([&](Writer& d) { d.add_int64(1, dim); }));
    });
    const std::string tensor = message([&](Writer& t) { t.add_int32(1, 1), t.add_message(2, shape); });
    w.add_string(1, "x"), w.add_message(2, message([&](Writer& t) { t.add_message(1, tensor); }));
  });
  return evaluate(import(model(graph({{node}, std::move(initializers), {input}, {kY}}), 8, {opset(version)})), dims,
                  std::move(x));
}

}  // namespace lathe::onnx
