// SPDX-License-Identifier: Apache-2.0
// A program of somebody else's, which sees an installation alone: client plan input-folder output-folder (see
// run_plan.h).
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "run_plan.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::vector<char> plan(std::istreambuf_iterator<char>(file), {});
  run_plan::Logger logger;
  std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(logger));
  if (!runtime) return 1;
  std::unique_ptr<nvinfer1::ICudaEngine> engine(runtime->deserializeCudaEngine(plan.data(), plan.size()));
  if (!engine || !run_plan::run(*engine, argv[2], argv[3])) return 1;
  std::printf("%d.%d\n", NV_TENSORRT_MAJOR, NV_TENSORRT_MINOR);
  return 0;
}
