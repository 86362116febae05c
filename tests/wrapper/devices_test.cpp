// SPDX-License-Identifier: Apache-2.0
// Which GPU an engine is loaded on, and safe mode, on machines that have
// several or other ones.
#include <filesystem>

#include "wrapper/wrapper_world.h"

namespace lathe {
namespace {

class WrapperDevicesTest : public WrapperTest {
 protected:
  void SetUp() override {
    if (!nv::on_gpu()) GTEST_SKIP() << "of CPUs there is one";
    if (nv::on_real_gpu()) GTEST_SKIP() << "its GPUs cannot be exchanged";
    WrapperTest::SetUp();
    if (IsSkipped()) return;
    bytes_ = plan();
    driver_function<void(int)>("fake_cuda_set_device_count")(3);
    set_gpu(1, "Fake H200", 9, 0);
    set_gpu(2, "Fake H100", 9, 0);
  }
  void TearDown() override {
    WrapperTest::TearDown();
    if (IsSkipped()) return;
    shared_.reset();
    releaseIdleDevices();
    set_gpu(0, "Fake H200", 9, 0);
    driver_function<void(int)>("fake_cuda_set_device_count")(1);
  }
  static void set_gpu(int id, const char* name, int major, int minor) {
    driver_function<void(int, const char*, int, int, size_t)>("fake_cuda_set_device")(id, name, major, minor,
                                                                                      size_t{16} << 30);
  }
  // -1: none.
  int chosen(const EngineTarget& target, bool hardware_compatible = false) {
    EngineFields fields = fields_of();
    fields.target = target;
    fields.hardwareCompatible = hardware_compatible;
    const auto wrapper = EngineWrapper::create(shared_, bytes_, fields);
    if (!wrapper) return -1;
    const CurrentGpu on_it(wrapper->device().id);  // for reading what it leaves
    expect_right(*wrapper, Batch(4));
    return wrapper->device().id;
  }
  std::string bytes_;
};

// The current one, the recorded number, the recorded product, the first that
// runs it.
TEST_F(WrapperDevicesTest, WhichIsTaken) {
  constexpr auto kGpu = EngineTarget::Kind::kGPU;
  EXPECT_EQ(chosen({2, 9, 0, kGpu, "Fake H100"}), 0) << "it is current";
  gpu_.reset();
  EXPECT_EQ(chosen({2, 9, 0, kGpu, "other"}), 2);
  EXPECT_EQ(chosen({1, 9, 0, kGpu, "Fake H100"}), 1);
  EXPECT_EQ(chosen({7, 9, 0, kGpu, "Fake H100"}), 2);
  EXPECT_EQ(chosen({7, 9, 0, kGpu, "other"}), 0);
  set_gpu(0, "A100", 8, 0);
  EXPECT_EQ(chosen({0, 9, 0, kGpu, "A100"}), 1) << "of another compute capability";
  gpu_.emplace(0);
  EXPECT_EQ(chosen({2, 9, 0, kGpu, "other"}), 2) << "the current one does not run it";
}

TEST_F(WrapperDevicesTest, NoneRunsIt) {
  constexpr auto kGpu = EngineTarget::Kind::kGPU;
  EngineFields fields = fields_of();
  fields.target = {0, 10, 0, kGpu, "Fake B200"};
  listen(nv::ILogger::Severity::kERROR);
  expect_refused(
      EngineWrapper::create(shared_, bytes_, fields) != nullptr, "LATHE-4003",
      {"cuda:0 (Fake B200, compute capability 10.0)", "cuda:2 (Fake H100, compute capability 9.0)", "kAMPERE_PLUS"});
  EXPECT_EQ(logger.text.size(), 1u);
  EXPECT_EQ(chosen({0, 8, 0, kGpu, "A100"}), -1);
  EXPECT_EQ(chosen({0, 8, 0, kGpu, "A100"}, true), 0) << "runs on every GPU from 8.0 on";
  for (int id : {0, 1, 2}) set_gpu(id, "T4", 7, 5);
  EXPECT_EQ(chosen({0, 8, 0, kGpu, "A100"}, true), -1);
}

// In safe mode a thread with another GPU current is warned of, once; its own
// stays current; memory elsewhere is copied.
TEST_F(WrapperDevicesTest, SafeMode) {
  EXPECT_FALSE(EngineWrapper::multiDeviceSafeMode());
  const std::unique_ptr<EngineWrapper> wrapper = wrap(bytes_, fields_of());
  ASSERT_EQ(wrapper->device().id, 0);
  EngineWrapper::setMultiDeviceSafeMode(true);
  EXPECT_TRUE(EngineWrapper::multiDeviceSafeMode());
  const Batch batch(4);
  listen(nv::ILogger::Severity::kWARNING);
  expect_right(*wrapper, batch);
  EXPECT_TRUE(logger.text.empty()) << logger.last();
  const CurrentGpu other(1);
  for (int run = 0; run < 2; ++run) expect_right(*wrapper, batch);
  EXPECT_EQ(lines_with("cuda:1 is current").size(), 1u);
  EXPECT_EQ(driver_function<int(int)>("fake_cuda_is_current")(1), 1);
  std::vector<float> elsewhere(12, 3.0F);
  driver_function<void(const void*, size_t, unsigned, int, int)>("fake_cuda_register")(elsewhere.data(), 48, 2, 0, 1);
  std::vector<OutputTensor> outputs;
  ASSERT_TRUE(wrapper->run({{"x", elsewhere.data(), nv::DataType::kFLOAT, nv::Dims2(4, 3), kDevice}}, outputs))
      << wrapperError();
  EXPECT_EQ(values_of<float>(outputs[0])[0], 6.0F);
  EXPECT_EQ(lines_with("'x' lies in memory that is not the engine's GPU's").size(), 1u);
}

// Each call of the driver may fail while an engine is loaded, run, recorded and let go: the answer is right or the
// failure is told, and nothing is left.
TEST_F(WrapperDevicesTest, EachCallOfTheDriverMayFail) {
  auto* const calls = driver_function<size_t()>("fake_cuda_calls");
  auto* const live = driver_function<size_t(const char*)>("fake_cuda_live");
  auto* const failures = driver_function<size_t()>("fake_cuda_failures");
  const size_t failed_before = failures();
  constexpr int kOutOfMemory = 2, kNotSticky = 0;
  const Batch batch(4);
  const AppStream stream;
  const EngineFields fields = fields_of();
  listen(nv::ILogger::Severity::kERROR);
  const auto use = [&] {  // whether all of it was done
    const std::unique_ptr<EngineWrapper> wrapper =
        EngineWrapper::create(shared_, bytes_, fields, {"", "none", "disabled"});
    if (!wrapper) return false;
    bool done = wrapper->setCudaGraphs(true);
    for (const bool on_default : {false, true}) {
      std::vector<OutputTensor> outputs;
      const auto location = on_default ? kHost : kDevice;
      if (!wrapper->run({batch.input(location)}, outputs, on_default ? nullptr : stream.get())) return false;
      // On the emulated GPU the host reads what the engine has left, without a call.
      done = done && static_cast<const float*>(outputs[0].data)[0] == batch.x[0] + batch.x[2];
      EXPECT_TRUE(done) << "an answer that is wrong";
    }
    return done;
  };
  const auto left = [&] {
    releaseIdleDevices();
    std::vector<size_t> counts;
    for (const char* kind : {"memory", "stream", "event", "graph", "executable", "module", "link", "context"})
      counts.push_back(live(kind));
    return counts;
  };
  ASSERT_TRUE(use()) << wrapperError();
  const std::vector<size_t> before = left();
  const size_t start = calls();
  ASSERT_TRUE(use()) << wrapperError();
  const size_t most = calls() - start;
  ASSERT_EQ(left(), before);
  size_t told = 0;
  for (size_t nth = 1; nth <= most; ++nth) {
    driver_function<void(const char*, size_t, int, int)>("fake_cuda_fail")(nullptr, nth, kOutOfMemory, kNotSticky);
    logger.text.clear();
    if (!use()) {
      ++told;
      EXPECT_EQ(std::string(wrapperError()).substr(0, 6), "LATHE-") << nth;
      EXPECT_FALSE(logger.text.empty()) << nth;
    }
    ASSERT_EQ(left(), before) << nth;
  }
  EXPECT_GT(told, most / 4) << "the others give something back, or can be done without";
  EXPECT_EQ(failures() - failed_before, most);
  EXPECT_TRUE(use()) << wrapperError();
}

// S191: kernels that were compiled for a context are in the file when the
// communicator is given up, and when the wrapper goes.
TEST_F(WrapperDevicesTest, KernelsAreSavedBeforeAContextGoes) {
  namespace fs = std::filesystem;
  char name[] = "/tmp/lathe_wrapper_XXXXXX";
  const fs::path folder = ::mkdtemp(name), path = folder / "deep" / "kernels.cache";
  config->setHardwareCompatibilityLevel(nv::HardwareCompatibilityLevel::kAMPERE_PLUS);
  bytes_ = plan();
  EngineFields fields = fields_of();
  fields.needsMultiDevice = true;
  fields.hardwareCompatible = true;
  const RuntimeSettings settings{path.string(), "lazy", "disabled"};
  std::unique_ptr<EngineWrapper> wrapper = wrap(bytes_, fields, settings);
  expect_right(*wrapper, Batch(4));
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(wrapper->releaseCommunicator());
  EXPECT_TRUE(fs::exists(path));
  wrapper.reset();
  listen(nv::ILogger::Severity::kINFO);
  wrapper = wrap(bytes_, fields, settings);
  EXPECT_EQ(lines_with("runtime cache '" + path.string() + "' is loaded").size(), 1u);
  expect_right(*wrapper, Batch(4));
  wrapper.reset();
  fs::remove(path);
  wrapper = wrap(bytes_, fields, settings);
  wrapper.reset();
  EXPECT_TRUE(fs::exists(path)) << "saved when the wrapper goes";
  fs::remove_all(folder);
}

}  // namespace
}  // namespace lathe
