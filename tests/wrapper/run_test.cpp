// SPDX-License-Identifier: Apache-2.0
// Runs: what is given, what comes out and where it lies, what is refused.
#include <atomic>
#include <thread>

#include "wrapper/wrapper_world.h"

namespace lathe {
namespace {

class WrappedRunTest : public WrapperTest {
 protected:
  void expect_run_refused(EngineWrapper& wrapper, const std::vector<InputTensor>& inputs, std::string_view code,
                          std::initializer_list<std::string_view> words) {
    listen(nv::ILogger::Severity::kERROR);
    std::vector<OutputTensor> outputs;
    expect_refused(wrapper.run(inputs, outputs), code, words);
    EXPECT_EQ(logger.text.size(), 1u) << "one report: " << logger.last();
    EXPECT_NE(logger.last().find("EngineWrapper 'model_small'"), std::string::npos) << logger.last();
  }
};

// S207: what tests look at are public functions.
TEST_F(WrappedRunTest, IsRight) {
  const std::unique_ptr<EngineWrapper> wrapper = wrap();
  for (const int64_t rows : {4, 1, 8, 4}) expect_right(*wrapper, Batch(rows, static_cast<float>(rows)));
  EXPECT_EQ(wrapper->counts().runs, 4);
  EXPECT_EQ(wrapper->counts().contexts, 1);
  EXPECT_EQ(wrapper->name(), "model_small");
  EXPECT_TRUE(wrapper->dynamicInputs());
  EXPECT_EQ(wrapper->device().id, 0);
}

TEST_F(WrappedRunTest, RefusesWhatIsWrong) {
  const std::unique_ptr<EngineWrapper> wrapper = wrap();
  const Batch batch(4);
  InputTensor input = batch.input();
  expect_run_refused(*wrapper, {}, "LATHE-5001", {"'x'"});
  expect_run_refused(*wrapper, {input, input}, "LATHE-5002", {"twice"});
  InputTensor other = input;
  other.name = "z";
  expect_run_refused(*wrapper, {input, other}, "LATHE-5002", {"'z'"});
  other = input;
  other.type = nv::DataType::kHALF;
  expect_run_refused(*wrapper, {other}, "LATHE-2102", {"'x'"});
  other = input;
  other.data = nullptr;
  expect_run_refused(*wrapper, {other}, "LATHE-5001", {"'x'"});
  for (const nv::Dims& dims : {nv::Dims{2, {9, 3}}, nv::Dims{2, {4, 2}}, nv::Dims{1, {4}}}) {
    other = input;
    other.dims = dims;
    expect_run_refused(*wrapper, {other}, "LATHE-5003", {"profile", "'x'"});
  }
  other.dims = nv::Dims{2, {-1, 3}};
  expect_run_refused(*wrapper, {other}, "LATHE-5002", {"'x'"});
  other.dims = nv::Dims{9, {}};
  expect_run_refused(*wrapper, {other}, "LATHE-5002", {"'x'"});
  other.dims = nv::Dims{4, {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}};
  expect_run_refused(*wrapper, {other}, "LATHE-5002", {"'x'"});
  expect_right(*wrapper, batch);
}

TEST_F(WrappedRunTest, FieldsMustBeThoseOfTheEngine) {
  const std::string bytes = plan();
  EngineFields fields = fields_of();
  fields.inputs = {"y"};
  expect_refused(EngineWrapper::create(shared_, bytes, fields) != nullptr, "LATHE-5002", {"no input 'y'"});
  fields = fields_of();
  fields.outputs = {};
  expect_refused(EngineWrapper::create(shared_, bytes, fields) != nullptr, "LATHE-5001", {"output 'y'"});
  fields = fields_of();
  fields.target.kind = EngineTarget::Kind::kDLA;
  expect_refused(EngineWrapper::create(shared_, bytes, fields) != nullptr, "LATHE-4003", {"DLA"});
}

// Memory of the caller's is used, and must be large enough.
TEST_F(WrappedRunTest, OutputsOfTheCaller) {
  const std::unique_ptr<EngineWrapper> wrapper = wrap();
  const Batch batch(4);
  const std::shared_ptr<void> memory = shared_memory(64);
  OutputTensor mine;
  mine.name = "y";
  mine.data = memory.get();
  mine.bytes = 32;
  std::vector<OutputTensor> outputs{mine};
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(wrapper->run({batch.input()}, outputs)) << wrapperError();
    EXPECT_EQ(outputs[0].data, memory.get());
    EXPECT_EQ(outputs[0].owner, nullptr);
    batch.expect(mine);
  }
  outputs[0].bytes = 31;
  expect_refused(wrapper->run({batch.input()}, outputs), "LATHE-5102", {"31", "32", "'y'"});
  outputs[0].name = "x";
  expect_refused(wrapper->run({batch.input()}, outputs), "LATHE-5002", {"'x'"});
}

// Inputs of the host's memory are copied to a GPU, with one warning.
TEST_F(WrappedRunTest, InputsOfTheHost) {
  const std::unique_ptr<EngineWrapper> wrapper = wrap();
  listen(nv::ILogger::Severity::kWARNING);
  for (int run = 0; run < 2; ++run) {
    const Batch batch(4, static_cast<float>(run));
    std::vector<OutputTensor> outputs;
    ASSERT_TRUE(wrapper->run({batch.input(kHost)}, outputs)) << wrapperError();
    batch.expect(outputs[0]);
  }
  EXPECT_EQ(lines_with("'x' lies in the host's memory").size(), nv::on_gpu() ? 1u : 0u);
}

// The next run's outputs are there before it, as long as sizes stay; what the
// caller holds is never used again.
TEST_F(WrappedRunTest, PreAllocatedOutputs) {
  const std::unique_ptr<EngineWrapper> wrapper = wrap();
  EXPECT_TRUE(wrapper->setPreAllocatedOutputs(true));
  EXPECT_TRUE(wrapper->preAllocatedOutputs());
  std::vector<std::vector<OutputTensor>> kept(6);
  std::vector<Batch> batches;
  for (size_t run = 0; run < kept.size(); ++run) {
    batches.emplace_back(run < 3 ? 4 : 2, static_cast<float>(run));
    ASSERT_TRUE(wrapper->run({batches[run].input()}, kept[run])) << wrapperError();
  }
  for (size_t run = 0; run < kept.size(); ++run) batches[run].expect(kept[run][0]);
  EXPECT_TRUE(wrapper->setPreAllocatedOutputs(false));
  expect_right(*wrapper, batches[0]);
}

// A context that is given memory for each run; a change recreates it.
TEST_F(WrappedRunTest, DynamicResourceAllocation) {
  EngineFields fields = fields_of();
  fields.allocation = ResourceAllocation::kDYNAMIC;
  const std::unique_ptr<EngineWrapper> wrapper = wrap(plan(), fields);
  for (const int64_t rows : {4, 8, 1}) expect_right(*wrapper, Batch(rows));
  EXPECT_TRUE(wrapper->setResourceAllocation(ResourceAllocation::kSTATIC));
  EXPECT_TRUE(wrapper->setResourceAllocation(ResourceAllocation::kSTATIC));
  EXPECT_EQ(wrapper->counts().contexts, 2);
  expect_right(*wrapper, Batch(4));
  EXPECT_TRUE(wrapper->setResourceAllocation(ResourceAllocation::kDYNAMIC));
  EXPECT_EQ(wrapper->resourceAllocation(), ResourceAllocation::kDYNAMIC);
  expect_right(*wrapper, Batch(4));
  expect_refused(wrapper->setResourceAllocation(static_cast<ResourceAllocation>(2)), "LATHE-9001", {"2"});
  EngineRecord record;
  ASSERT_TRUE(wrapper->record(record));
  EXPECT_EQ(record[RESOURCE_ALLOCATION_STRATEGY_IDX], "1");
}

TEST_F(WrappedRunTest, ProfilingIsJson) {
  const std::unique_ptr<EngineWrapper> wrapper = wrap();
  std::string json;
  ASSERT_TRUE(wrapper->profileJson(json));
  EXPECT_NE(json.find("\"runs\":0"), std::string::npos) << json;
  ASSERT_TRUE(wrapper->setProfiling(true));
  for (int run = 0; run < 3; ++run) expect_right(*wrapper, Batch(4));
  ASSERT_TRUE(wrapper->profileJson(json));
  EXPECT_NE(json.find("\"runs\":3"), std::string::npos) << json;
  EXPECT_NE(json.find("\"milliseconds\":"), std::string::npos) << json;
  const int64_t before = wrapper->counts().contexts;
  ASSERT_TRUE(wrapper->setProfiling(false));
  EXPECT_EQ(wrapper->counts().contexts, before + 1) << "the context goes with the profiler";
  expect_right(*wrapper, Batch(4));
  ASSERT_TRUE(wrapper->profileJson(json));
  EXPECT_NE(json.find("\"runs\":3"), std::string::npos) << json;
}

TEST_F(WrappedRunTest, BudgetsAndCommunicatorsOfEnginesThatHaveNone) {
  const std::unique_ptr<EngineWrapper> wrapper = wrap();
  EXPECT_EQ(wrapper->streamableWeights(), 0);
  expect_refused(wrapper->setWeightStreamingBudget(1000), "LATHE-9002", {"kWEIGHT_STREAMING"});
  expect_refused(wrapper->setCommunicator(this), "LATHE-9002", {"across devices"});
  expect_right(*wrapper, Batch(4));
}

// S192: strategies are those of before where a communicator has come and gone,
// which recreates the context.
TEST_F(WrappedRunTest, StrategiesSurviveCommunicators) {
  EngineFields fields = fields_of();
  fields.needsMultiDevice = true;
  const std::unique_ptr<EngineWrapper> wrapper = wrap(plan(), fields, {"", "none", "whole_graph_capture"});
  expect_refused(wrapper->setCommunicator(nullptr), "LATHE-9001", {"releaseCommunicator()"});
  wrapper->setCommunicator(this);  // whether a runtime takes it or not
  ASSERT_TRUE(wrapper->releaseCommunicator()) << wrapperError();
  EXPECT_EQ(wrapper->counts().contexts, 2);
  EXPECT_EQ(wrapper->settings().specialization, "none");
  EXPECT_EQ(wrapper->settings().cudaGraphs, "whole_graph_capture");
  expect_right(*wrapper, Batch(4));
}

// Calls of several threads follow each other, those of several wrappers do not.
TEST_F(WrappedRunTest, Threads) {
  const std::string bytes = plan();
  const std::unique_ptr<EngineWrapper> wrappers[] = {wrap(bytes, fields_of()), wrap(bytes, fields_of())};
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      const auto current = nv::on_gpu() ? std::make_unique<CurrentGpu>() : nullptr;
      for (int run = 0; run < 10; ++run) {
        const Batch batch(1 + (thread + run) % 8, static_cast<float>(thread));
        std::vector<OutputTensor> outputs;
        if (!wrappers[thread % 2]->run({batch.input()}, outputs)) return;
        batch.expect(outputs[0]);
        ++right;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 40);
  EXPECT_EQ(wrappers[0]->counts().runs, 20);
}

// Outputs outlive the wrapper.
TEST_F(WrappedRunTest, OutputsAreTheCallers) {
  std::vector<OutputTensor> outputs;
  const Batch batch(4);
  {
    const std::unique_ptr<EngineWrapper> wrapper = wrap();
    ASSERT_TRUE(wrapper->run({batch.input()}, outputs));
  }
  shared_.reset();
  batch.expect(outputs[0]);
}

}  // namespace
}  // namespace lathe
