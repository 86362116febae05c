// SPDX-License-Identifier: Apache-2.0
// Runtimes that load plans of trusted keys alone.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "api/small_engine.h"

namespace nvinfer1 {
namespace {

namespace fs = std::filesystem;

struct Variable {
  explicit Variable(const std::string& value) { ::setenv("LATHE_TRUSTED_KEYS", value.c_str(), 1); }
  ~Variable() { ::unsetenv("LATHE_TRUSTED_KEYS"); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
};

class Trust : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    folder_ = fs::temp_directory_path() / ("lathe_trust_" + std::to_string(::getpid()));
    fs::create_directory(folder_);
    for (const char* name : {"a", "b"})
      ASSERT_TRUE(lathe::makeKeyFiles(path(name, ".key").c_str(), path(name, ".pub").c_str())) << lathe::lastError();
    plan_ = build();
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name, const char* kind) const { return folder_ / (name + kind); }
  std::unique_ptr<IHostMemory> signed_by(const char* name, const IHostMemory& plan) const {
    std::unique_ptr<IHostMemory> result(lathe::signPlan(plan.data(), plan.size(), path(name, ".key").c_str()));
    EXPECT_NE(result, nullptr) << lathe::lastError();
    return result;
  }
  bool loads(IRuntime& runtime, const IHostMemory& plan) {
    return std::unique_ptr<ICudaEngine>(runtime.deserializeCudaEngine(plan.data(), plan.size())) != nullptr;
  }
  // With one report, of that error.
  void expect_refused(IRuntime& runtime, const IHostMemory& plan, const char* words) {
    const size_t before = logger.text.size();
    EXPECT_FALSE(loads(runtime, plan)) << words;
    ASSERT_EQ(logger.text.size(), before + 1) << words;
    EXPECT_NE(logger.last().find(words), std::string::npos) << logger.last();
  }

  std::unique_ptr<IHostMemory> plan_;

 private:
  fs::path folder_;
};

// S69, S70.
TEST_F(Trust, SetterDecides) {
  const auto by_a = signed_by("a", *plan_), by_b = signed_by("b", *plan_);
  EXPECT_TRUE(loads(*runtime, *plan_));
  EXPECT_TRUE(loads(*runtime, *by_b));
  const std::unique_ptr<ICudaEngine> before = load(*plan_);
  ASSERT_TRUE(lathe::setTrustedKeys(*runtime, path("a", ".pub").c_str())) << lathe::lastError();
  EXPECT_TRUE(loads(*runtime, *by_a));
  expect_refused(*runtime, *plan_, "LATHE-4005");
  expect_refused(*runtime, *by_b, "ed25519:");
  EXPECT_NE(std::unique_ptr<IExecutionContext>(before->createExecutionContext()), nullptr);

  EXPECT_FALSE(lathe::setTrustedKeys(*runtime, ""));
  EXPECT_FALSE(lathe::setTrustedKeys(*runtime, path("a", ".key").c_str()));
  expect_refused(*runtime, *plan_, "not signed");  // it is as it was
  ASSERT_TRUE(lathe::setTrustedKeys(*runtime, nullptr));
  EXPECT_TRUE(loads(*runtime, *plan_));
}

// S69: every way into the runtime.
TEST_F(Trust, AllWaysOfLoadingAskThePolicy) {
  ASSERT_TRUE(lathe::setTrustedKeys(*runtime, path("a", ".pub").c_str()));
  const std::string file = path("plan", ".engine");
  ASSERT_TRUE(lathe::saveFile(plan_->data(), plan_->size(), file.c_str()));
  EXPECT_EQ(lathe::loadEngineFile(*runtime, file.c_str()), nullptr);
  struct Reader : IStreamReaderV2 {
    int64_t read(void* target, int64_t count, cudaStream_t) noexcept override {
      const auto given = std::min<int64_t>(count, static_cast<int64_t>(plan->size() - position));
      std::copy_n(static_cast<const char*>(plan->data()) + position, given, static_cast<char*>(target));
      position += static_cast<size_t>(given);
      return given;
    }
    bool seek(int64_t, SeekPosition) noexcept override { return false; }
    const IHostMemory* plan = nullptr;
    size_t position = 0;
  } reader;
  reader.plan = plan_.get();
  EXPECT_EQ(runtime->deserializeCudaEngine(reader), nullptr);
  lathe::setInspectionOnly(*runtime, true);
  expect_refused(*runtime, *plan_, "LATHE-4005");
}

// S69: the application cannot take back what the environment asks for.
TEST_F(Trust, EnvironmentDecidesToo) {
  const auto by_a = signed_by("a", *plan_), by_b = signed_by("b", *plan_);
  std::unique_ptr<IRuntime> made;
  {
    const Variable variable(path("a", ".pub"));
    made.reset(createInferRuntime(logger));
  }
  EXPECT_TRUE(loads(*made, *by_a));
  expect_refused(*made, *plan_, "LATHE-4005");
  ASSERT_TRUE(lathe::setTrustedKeys(*made, nullptr));
  expect_refused(*made, *by_b, "LATHE-4005");
  ASSERT_TRUE(lathe::setTrustedKeys(*made, path("b", ".pub").c_str()));
  expect_refused(*made, *by_a, "LATHE-4005");
  expect_refused(*made, *by_b, "LATHE-4005");
}

// S69: what cannot be read lets nothing through.
TEST_F(Trust, ABrokenListRefusesAll) {
  for (const std::string& list : {std::string(), path("missing", ".pub")}) {
    const Variable variable(list);
    const std::unique_ptr<IRuntime> made(createInferRuntime(logger));
    expect_refused(*made, *signed_by("a", *plan_), "LATHE_TRUSTED_KEYS");
  }
}

// S71: as they come from a transport that may do anything with them.
TEST_F(Trust, EveryFlipAndTruncationOfASignedPlanIsRefused) {
  ASSERT_TRUE(lathe::setTrustedKeys(*runtime, path("a", ".pub").c_str()));
  const auto by_a = signed_by("a", *plan_);
  std::vector<char> bytes(static_cast<const char*>(by_a->data()),
                          static_cast<const char*>(by_a->data()) + by_a->size());
  ASSERT_LT(bytes.size(), 100'000u);  // of more, all flips would take minutes
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << i % 8));
    ASSERT_EQ(runtime->deserializeCudaEngine(bytes.data(), bytes.size()), nullptr) << i;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << i % 8));
  }
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_EQ(runtime->deserializeCudaEngine(bytes.data(), size), nullptr) << size;
  EXPECT_TRUE(loads(*runtime, *by_a));
}

TEST_F(Trust, VerifyingAndSigningTellWhatIsWrong) {
  const auto by_a = signed_by("a", *plan_);
  const std::string a = path("a", ".pub"), b = path("b", ".pub");
  EXPECT_TRUE(lathe::verifyPlan(by_a->data(), by_a->size(), a.c_str()));
  EXPECT_FALSE(lathe::verifyPlan(by_a->data(), by_a->size(), b.c_str()));
  EXPECT_NE(std::string(lathe::lastError()).find("LATHE-4005"), std::string::npos);
  EXPECT_FALSE(lathe::verifyPlan(plan_->data(), plan_->size(), a.c_str()));
  EXPECT_FALSE(lathe::verifyPlan(nullptr, 0, a.c_str()));
  EXPECT_FALSE(lathe::verifyPlan(by_a->data(), by_a->size(), nullptr));
  EXPECT_FALSE(lathe::verifyPlan(by_a->data(), by_a->size() - 1, a.c_str()));
  EXPECT_EQ(lathe::signPlan(plan_->data(), plan_->size(), a.c_str()), nullptr);
  EXPECT_EQ(lathe::signPlan(nullptr, 0, path("a", ".key").c_str()), nullptr);
  EXPECT_EQ(lathe::signPlan(plan_->data(), plan_->size(), nullptr), nullptr);
  EXPECT_EQ(lathe::signPlan(plan_->data(), plan_->size() - 1, path("a", ".key").c_str()), nullptr);
  EXPECT_FALSE(lathe::makeKeyFiles(path("a", ".key").c_str(), path("c", ".pub").c_str()));
  EXPECT_FALSE(lathe::makeKeyFiles(nullptr, nullptr));

  const std::unique_ptr<IHostMemory> told(lathe::planJson(by_a->data(), by_a->size()));
  EXPECT_NE(std::string(static_cast<const char*>(told->data())).find("\"signed_by\": \"ed25519:"), std::string::npos);
  const std::unique_ptr<IHostMemory> plain(lathe::planJson(plan_->data(), plan_->size()));
  EXPECT_NE(std::string(static_cast<const char*>(plain->data())).find("\"signed_by\": null"), std::string::npos);
}

}  // namespace
}  // namespace nvinfer1
