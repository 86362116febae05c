// SPDX-License-Identifier: Apache-2.0
// Ranges of NVTX, as a profiler sees them that the environment names.
#include <dlfcn.h>

#include <cstdlib>
#include <iostream>

#include "api/small_engine.h"

namespace nvinfer1 {
namespace {

class TraceRanges : public EngineTest {
 protected:
  // Runs at each verbosity, and writes what the profiler was told.
  [[noreturn]] void run_under_a_profiler() {
    setenv("NVTX_INJECTION64_PATH", RANGE_RECORDER, 1);
    config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    const auto engine = load(*build());
    const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
    void* const library = dlopen(RANGE_RECORDER, RTLD_NOW | RTLD_NOLOAD);
    if (!library) std::_Exit(2);
    const auto recorded = reinterpret_cast<const char* (*)()>(dlsym(library, "recorded_ranges"));
    alignas(256) const float x[3] = {1, 2, 3};
    alignas(256) float y[2] = {};
    context->setInputShape("x", Dims2(1, 3));
    context->setInputTensorAddress("x", x);
    context->setTensorAddress("y", y);
    bool ran = context->enqueueV3(nullptr);
    ran = ran && context->setNvtxVerbosity(ProfilingVerbosity::kDETAILED) && context->enqueueV3(nullptr);
    ran = ran && context->setNvtxVerbosity(ProfilingVerbosity::kNONE) && context->enqueueV3(nullptr);
    std::cerr << recorded() << "end\n";
    std::_Exit(ran ? 0 : 1);
  }
};

TEST_F(TraceRanges, OpenAroundRunsAndLayers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has not looked for a profiler yet
  // Names of layers end in their kind, and those of kernels are in small letters.
  const std::string layer = "push [^\n]+\\[[A-Z][^\n]*\\]\npop\n";
  const std::string detailed = "push [^\n]+ \\[[a-z][^\n]*\\]\npop\n";
  const std::string run = "push ExecutionContext::enqueueV3\n";
  EXPECT_EXIT(run_under_a_profiler(), testing::ExitedWithCode(0),
              "domain TensorRT\n" + run + "(" + layer + ")+pop\n" + run + "(" + detailed + ")+pop\nend\n");
}

TEST_F(TraceRanges, AreLeftOutWhereNobodyListens) {
  const auto engine = load(*build());
  const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
  EXPECT_EQ(context->getNvtxVerbosity(), ProfilingVerbosity::kLAYER_NAMES_ONLY);
  EXPECT_TRUE(context->setNvtxVerbosity(ProfilingVerbosity::kNONE));
  EXPECT_EQ(context->getNvtxVerbosity(), ProfilingVerbosity::kNONE);
  EXPECT_TRUE(logger.text.empty()) << logger.last();
}

}  // namespace
}  // namespace nvinfer1
