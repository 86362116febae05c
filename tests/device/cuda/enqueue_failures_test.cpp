// SPDX-License-Identifier: Apache-2.0
// The driver fails while an engine runs: enqueueV3() gives false, the application's error recorder gets one report with
// the right code, and contexts run on where the device is alive.
#include "device/cuda/enqueue_fixture.h"

namespace lathe::cuda {
namespace {

struct Recorder final : nv::IErrorRecorder {
  int32_t getNbErrors() const noexcept override { return static_cast<int32_t>(codes.size()); }
  nv::ErrorCode getErrorCode(int32_t i) const noexcept override { return codes[static_cast<size_t>(i)]; }
  ErrorDesc getErrorDesc(int32_t i) const noexcept override { return texts[static_cast<size_t>(i)].c_str(); }
  bool hasOverflowed() const noexcept override { return false; }
  void clear() noexcept override { codes.clear(), texts.clear(); }
  bool reportError(nv::ErrorCode code, ErrorDesc text) noexcept override {
    codes.push_back(code), texts.emplace_back(text);
    return false;
  }
  RefCount incRefCount() noexcept override { return ++references; }
  RefCount decRefCount() noexcept override { return --references; }
  std::vector<nv::ErrorCode> codes;
  std::vector<std::string> texts;
  int references = 0;
};

class EnqueueFailuresTest : public EnqueueTest {
 protected:
  void SetUp() override {
    EnqueueTest::SetUp();
    context_->setErrorRecorder(&recorder_);
  }
  void TearDown() override {
    EXPECT_EQ(log_.text, "") << "reports go to the recorder";
    if (context_) context_->setErrorRecorder(nullptr);
    EXPECT_EQ(recorder_.references, 0);
    EnqueueTest::TearDown();
  }
  // The last run failed: one report, of this code.
  void expect_report(nv::ErrorCode code, const std::string& what) {
    ASSERT_EQ(recorder_.getNbErrors(), 1) << what;
    EXPECT_EQ(recorder_.getErrorCode(0), code) << what << ": " << recorder_.getErrorDesc(0);
    EXPECT_NE(std::string(recorder_.getErrorDesc(0)).find("IExecutionContext::enqueueV3"), std::string::npos)
        << recorder_.getErrorDesc(0);
    recorder_.clear();
  }
  // Fails each call of a run in turn, until there are no more; gives how many of these runs failed. `before` a run
  // makes what is to run anew or leaves what is recorded.
  size_t fail_each_call(CUresult failure, nv::ErrorCode code, const std::function<int64_t()>& before) {
    size_t reported = 0;
    for (size_t nth = 1;; ++nth) {
      run(4, static_cast<float>(nth));
      const int64_t rows = before();
      const size_t calls = fake_cuda_calls(), failures = fake_cuda_failures();
      fake_cuda_fail(nullptr, nth, failure, 0);
      const bool ran = enqueue();
      if (fake_cuda_failures() == failures) {  // more than there are: some later run meets it
        while (fake_cuda_failures() == failures) enqueue();
        recorder_.clear();
        break;
      }
      const std::string what = fmt::format("{} ({}), {}", fake_cuda_call(calls + nth - 1), nth, int{failure});
      if (ran) {
        EXPECT_EQ(recorder_.getNbErrors(), 0) << what;
        expect_results(rows);
      } else {
        ++reported;
        expect_report(code, what);
      }
      if (HasFatalFailure()) break;
    }
    return reported;
  }
  Recorder recorder_;
};

// S85.
TEST_F(EnqueueFailuresTest, ReportTheirCodeOfRecordedRuns) {
  for (int i = 0; i < 3; ++i) run(4, 1);
  EXPECT_GE(fail_each_call(CUDA_ERROR_INVALID_VALUE, nv::ErrorCode::kFAILED_EXECUTION, [] { return 4; }), 1u);
  EXPECT_GE(fail_each_call(CUDA_ERROR_OUT_OF_MEMORY, nv::ErrorCode::kFAILED_ALLOCATION, [] { return 4; }), 1u);
}

TEST_F(EnqueueFailuresTest, ReportTheirCodeOfNewShapes) {
  int64_t rows = 5;
  const auto change = [&] {
    rows = rows % 15 + 1;
    fill(rows, 3);
    EXPECT_TRUE(context_->setInputShape("x", nv::Dims2(rows, kIn)));
    return rows;
  };
  const auto layers = static_cast<size_t>(engine_->getNbLayers());
  EXPECT_GE(fail_each_call(CUDA_ERROR_INVALID_VALUE, nv::ErrorCode::kFAILED_EXECUTION, change), layers);
  EXPECT_GE(fail_each_call(CUDA_ERROR_OUT_OF_MEMORY, nv::ErrorCode::kFAILED_ALLOCATION, change), layers);
}

// A fault ends the device: that run and all later ones report it.
// S82, S84, S85.
TEST_F(EnqueueFailuresTest, ReportFaultsAndLostDevices) {
  run(4, 1);
  context_->setDebugSync(true);
  fake_cuda_fail("cuStreamSynchronize", 1, CUDA_ERROR_ILLEGAL_ADDRESS, 1);
  EXPECT_FALSE(enqueue());
  expect_report(nv::ErrorCode::kFAILED_EXECUTION, "fault");
  EXPECT_NE(std::string(lastError())
                .find("another engine's or the application's own; engines that were given work last: '" +
                      std::string(engine_->getName()) + "'"),
            std::string::npos)
      << lastError();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(enqueue());
    expect_report(nv::ErrorCode::kFAILED_EXECUTION, "lost device");
  }
}

}  // namespace
}  // namespace lathe::cuda
