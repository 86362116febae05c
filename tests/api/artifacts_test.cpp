// SPDX-License-Identifier: Apache-2.0
// lathe_artifacts.h from C++: requests, and the object. When engines are used is in tests/cli/artifacts_cli_test.py.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>

#include "api/small_engine.h"
#include "lathe_artifacts.h"
#include "source_dir.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;
using Memory = std::unique_ptr<nvinfer1::IHostMemory>;

TEST(Artifacts, RequestsThatAreRefused) {
  nvinfer1::Errors logger;
  const std::string deep(1 << 20, '[');
  const std::string nine = R"({"onnx": "a", "profiles": [{"x": {"min": [1,1,1,1,1,1,1,1,1], "opt": [], "max": []}}]})";
  const std::pair<std::string, const char*> cases[] = {
      {"", "must be a JSON object"},
      {"[]", "must be a JSON object"},
      {deep, "must be a JSON object"},
      {R"({"onnx": )" + deep + std::string(deep.size(), ']') + "}", "nested too deeply"},
      {R"({"onnx": "a", "profiles": {"x": []}})", "\"profiles\" of the request"},
      {R"({"onnx": "a", "profiles": [{"x": {"min": [1], "opt": [1]}}]})", "\"profiles\" of the request"},
      {R"({"onnx": "a", "plugins": [1]})", "\"plugins\" of the request cannot be [1]"},
      {R"({"onnx": 1})", "\"onnx\" of the request cannot be 1"},
      {R"({"onnx": "a", "tf32": "true"})", "\"tf32\" of the request cannot be \"true\""},
      {R"({"onnx": "a", "threads": -1})", "\"threads\" of the request cannot be -1"},
      {nine, "\"profiles\" of the request"},
      {"{}", "has no \"onnx\""},
      {R"({"onnx": "a", "colour": 1})", "no \"colour\""},
      {R"({"onnx": "a", "level": 6})", "\"level\" of the request cannot be 6"},
      {R"({"onnx": "a", "level": 4294967299})", "\"level\" of the request"},
      {R"({"onnx": "a", "level": -1})", "\"level\" of the request"},
      {R"({"onnx": "a", "batch": 0})", "\"batch\" of the request cannot be 0"},
      {R"({"onnx": "no/such.onnx"})", "no/such.onnx"}};
  for (const auto& [request, message] : cases) {
    EXPECT_EQ(Memory(artifactExplainJson(request.c_str())), nullptr) << request.substr(0, 80);
    EXPECT_NE(std::strstr(lastError(), message), nullptr) << lastError();
    EXPECT_EQ(Memory(artifactPlan(request.c_str(), logger)), nullptr) << request.substr(0, 80);
  }
  EXPECT_EQ(logger.text.size(), std::size(cases)) << "each is one report";
  EXPECT_EQ(Memory(artifactExplainJson(nullptr)), nullptr);
  EXPECT_EQ(Memory(artifactPlan(R"({"onnx": "a"})", logger, -1)), nullptr);
  EXPECT_EQ(Memory(artifactsJson(nullptr)), nullptr);
  EXPECT_EQ(pruneArtifacts("no/such/folder", 0), -1);
  EXPECT_EQ(pruneArtifacts(".", -1), -1);
}

TEST(Artifacts, AnEngineIsBuiltOnce) {
  char name[] = "/tmp/lathe_artifacts_XXXXXX";
  const fs::path folder = ::mkdtemp(name);
  const std::string request = R"({"onnx": ")" + source_path("/examples/digits/digits.onnx") + R"(", "directory": ")" +
                              folder.string() + R"(", "target": "cpu", "budget_seconds": 0})";
  nvinfer1::Errors logger;
  logger.most = nvinfer1::ILogger::Severity::kINFO;
  const ArtifactCache cache(logger);
  const Memory built(cache.plan(request)), used(cache.plan(request)), told(cache.explainJson(request));
  fs::remove_all(folder);
  ASSERT_TRUE(built && used && told) << logger.last();
  EXPECT_NE(logger.last().find("is used"), std::string::npos) << logger.last();
  ASSERT_EQ(built->size(), used->size());
  EXPECT_EQ(std::memcmp(built->data(), used->data(), built->size()), 0);
  EXPECT_NE(std::strstr(static_cast<const char*>(told->data()), "\"hit\": true"), nullptr);
}

}  // namespace
}  // namespace lathe
