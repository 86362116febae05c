// SPDX-License-Identifier: Apache-2.0
// Engines whose sizes are checked when they are set.
#pragma once

#include "lowering/engine_fixture.h"

namespace lathe {

inline ProfileShapes profile(std::map<std::string, ProfileShapes::Input> inputs) { return {std::move(inputs)}; }

inline Error build_error(const std::string& text, const std::vector<ProfileShapes>& profiles) {
  Result<ir::Graph> graph = ir::parse_graph(text);
  EXPECT_TRUE(graph) << graph.error().to_string();
  BuildOptions options = native_options();
  options.profiles = profiles;
  Result<std::unique_ptr<BuiltPlan>> built = build_plan(std::move(*graph), options);
  EXPECT_FALSE(built);
  return built ? Error{} : built.error();
}

struct Checked {
  std::shared_ptr<const Engine> engine;
  // Runs inputs of these dims: the outputs' dims, or the error.
  Result<std::vector<Dims>> run(const std::vector<Dims>& dims) const {
    LATHE_ASSIGN(std::unique_ptr<Context> context, Context::create(engine));
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < dims.size(); ++i)
      inputs.push_back(random_tensor(engine->plan().tensors[engine->plan().bindings[i].tensor].dtype, dims[i], 1));
    LATHE_ASSIGN(const std::vector<Tensor> outputs, try_engine(*context, inputs));
    std::vector<Dims> results;
    for (const Tensor& output : outputs) results.push_back(output.dims());
    return results;
  }
};

inline Checked build_checked(const std::string& text, std::vector<ProfileShapes> profiles = {}) {
  BuildOptions options = native_options();
  options.profiles = std::move(profiles);
  return {build_engine(text, options)};
}

inline void expect_refused(const Result<std::vector<Dims>>& result, const std::vector<std::string>& words) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::shapes_inconsistent) << result.error().to_string();
  for (const std::string& word : words)
    EXPECT_NE(result.error().message.find(word), std::string::npos) << result.error().message;
}

}  // namespace lathe
