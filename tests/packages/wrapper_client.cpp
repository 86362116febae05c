// SPDX-License-Identifier: Apache-2.0
// A program of somebody else's that keeps an engine in a wrapper: wrapper_client plan image. The plan is of
// digits.onnx, for a CPU and four images.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "lathe_wrapper.h"
#include "run_plan.h"

namespace {

std::vector<lathe::OutputTensor> run(lathe::EngineWrapper& engine, const std::vector<char>& image) {
  const lathe::InputTensor input{"image", image.data(), nvinfer1::DataType::kFLOAT, nvinfer1::Dims4(4, 1, 8, 8),
                                 nvinfer1::TensorLocation::kHOST};
  std::vector<lathe::OutputTensor> outputs;
  if (!engine.run({input}, outputs)) outputs.clear();
  return outputs;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::vector<char> plan = run_plan::read_file(argv[1]), image = run_plan::read_file(argv[2]);
  run_plan::Logger logger;
  const std::shared_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(logger));
  if (!runtime) return 1;
  lathe::EngineFields fields;
  fields.name = "digits";
  fields.target.kind = lathe::EngineTarget::Kind::kCPU;
  fields.inputs = {"image"};
  fields.outputs = {"probabilities"};
  const auto first = lathe::EngineWrapper::create(runtime, std::string(plan.begin(), plan.end()), fields);
  lathe::EngineRecord record, again;
  if (!first || !first->record(record)) return 1;
  const auto second = lathe::EngineWrapper::create(runtime, record);
  if (!second || !second->record(again) || again != record) return 1;
  const std::vector<lathe::OutputTensor> one = run(*first, image), two = run(*second, image);
  if (one.size() != 1 || two.size() != 1 || one[0].dims.d[0] != 4 || one[0].bytes != two[0].bytes) return 1;
  if (std::memcmp(one[0].data, two[0].data, static_cast<size_t>(one[0].bytes)) != 0) return 1;
  for (int row = 0; row < 4; ++row) {
    float sum = 0;
    for (int i = 0; i < 10; ++i) sum += static_cast<const float*>(one[0].data)[row * 10 + i];
    if (std::fabs(sum - 1) > 1e-5f) return 1;
  }
  std::printf("equal records, equal answers: 4 rows that sum up to 1\n");
  return 0;
}
