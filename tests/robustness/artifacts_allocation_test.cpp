// SPDX-License-Identifier: Apache-2.0
// What reads and writes JSON: engines beside their models, comparisons, options.
#include <filesystem>
#include <fstream>

#include "api/extensions/artifacts/store.h"
#include "api/report.h"
#include "lathe_artifacts.h"
#include "lathe_quantize.h"
#include "onnx/model_bytes.h"
#include "robustness/allocation_sweep.h"
#include "robustness/count_errors.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;
using namespace lathe::onnx;  // what writes the model
using Memory = std::unique_ptr<nvinfer1::IHostMemory>;

class ArtifactsAllocationFailure : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "lathe_XXXXXX").string();
    folder = ::mkdtemp(name.data());
    path = folder / "net.onnx";
    std::ofstream(path, std::ios::binary)
        << model(graph({{node("Relu", {"x"}, {"y"})}, {}, {value_info("x", 1, {2, 8})}, {value_info("y", 1, {2, 8})}}));
    request =
        R"({"onnx": ")" + path.string() + R"(", "target": "cpu", "budget_seconds": 0, "threads": 1, "profiles": []})";
    EXPECT_EQ(Memory(artifactsJson(std::string(200, 'x').c_str())), nullptr);  // what the thread keeps: its last error
  }
  void TearDown() override { fs::remove_all(folder); }

  fs::path folder, path;
  std::string request;
  CountErrors logger;
};

TEST_F(ArtifactsAllocationFailure, EnginesAreFoundAndExplained) {
  ASSERT_TRUE(Memory(artifactPlan(request.c_str(), logger)));
  EXPECT_GT(sweep_allocations([&] {
              logger.errors = 0;
              const Memory plan(artifactPlan(request.c_str(), logger));
              EXPECT_EQ(logger.errors, plan ? 0 : 1);
              return plan != nullptr;
            }),
            100);
  EXPECT_GT(sweep_allocations([&] { return Memory(artifactExplainJson(request.c_str())) != nullptr; }), 100);
  EXPECT_GT(sweep_allocations([&] { return Memory(artifactsJson(folder.c_str())) != nullptr; }), 20);
  EXPECT_GT(sweep_allocations([&] { return pruneArtifacts(folder.c_str(), INT64_MAX) == 0; }), 10);
  EXPECT_TRUE(Memory(artifactPlan(request.c_str(), logger)));
}

// What a build is followed by.
TEST_F(ArtifactsAllocationFailure, EnginesAreWritten) {
  const std::vector<std::byte> plan(100);
  const fs::path engine = folder / "fp32/bs1/net.engine";
  api::LoggerLog log(&logger);
  const auto write = [&] {
    const auto lock = api::artifacts::lock(engine, log);
    api::Json note = api::json_object({{"key", api::json_object({{"a", 1}})}});
    return lock && api::artifacts::write(engine, plan, std::move(note));
  };
  EXPECT_GT(sweep_allocations([&] { return write() && pruneArtifacts(folder.c_str(), 0) > 0; }), 50);
}

TEST_F(ArtifactsAllocationFailure, TensorsAreCompared) {
  const std::vector<float> values = {1, 2};
  const NamedTensor tensor{"x", nvinfer1::DataType::kFLOAT, nvinfer1::Dims{1, {2}}, values.data()};
  EXPECT_GT(sweep_allocations([&] {
              return Memory(compareTensorsJson(tensor, tensor, R"({"rtol": 0.1, "doubles": false})")) != nullptr;
            }),
            10);
}

TEST_F(ArtifactsAllocationFailure, LayersAreListed) {
  const std::unique_ptr<IQuantizer> quantizer(createQuantizer(path.c_str(), 1, logger));
  ASSERT_TRUE(quantizer) << lastError();
  const char* options = R"({"method": "minmax", "percentile": 99.5, "symmetric": false})";
  EXPECT_EQ(
      Memory(quantizer->layersJson(R"({"exclude": ["no such layer, and a long name so that the error is long"]})")),
      nullptr);
  EXPECT_GT(sweep_allocations([&] { return Memory(quantizer->layersJson(options)) != nullptr; }), 5);
}

}  // namespace
}  // namespace lathe
