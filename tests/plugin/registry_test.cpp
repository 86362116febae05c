// SPDX-License-Identifier: Apache-2.0
#include "plugin/registry.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // creators of the V2 family

namespace lathe::plugin {
namespace {

class Creator final : public nvinfer1::IPluginCreatorV3One {
 public:
  explicit Creator(const char* name) : name_(name) {}
  nvinfer1::IPluginV3* createPlugin(const char*, const nvinfer1::PluginFieldCollection*,
                                    nvinfer1::TensorRTPhase) noexcept override {
    return nullptr;
  }
  const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
  const char* getPluginName() const noexcept override { return name_; }
  const char* getPluginVersion() const noexcept override { return "1"; }
  const char* getPluginNamespace() const noexcept override { return ""; }

 private:
  const char* name_;
};

class OldCreator final : public nvinfer1::IPluginCreator {
 public:
  const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
  nvinfer1::IPluginV2* createPlugin(const char*, const nvinfer1::PluginFieldCollection*) noexcept override {
    return nullptr;
  }
  nvinfer1::IPluginV2* deserializePlugin(const char*, const void*, size_t) noexcept override { return nullptr; }
  const char* getPluginName() const noexcept override { return "old"; }
  const char* getPluginVersion() const noexcept override { return "1"; }
  void setPluginNamespace(const char* space) noexcept override { space_ = space; }
  const char* getPluginNamespace() const noexcept override { return space_.c_str(); }

 private:
  std::string space_;
};

// Of a kind that nobody knows: none at all.
class Stranger final : public nvinfer1::IPluginCreatorInterface {
 public:
  nvinfer1::InterfaceInfo getInterfaceInfo() const noexcept override { return {nullptr, 1, 0}; }
};

// Counts itself and its clones, and how many of them were told to let go.
class Resource final : public nvinfer1::IPluginResource {
 public:
  struct Counts {
    int alive = 0, released = 0;
  };
  explicit Resource(Counts& counts, std::function<void()> cloning = {})
      : counts_(counts), cloning_(std::move(cloning)) {
    ++counts_.alive;
  }
  ~Resource() noexcept override { --counts_.alive; }
  int32_t release() noexcept override { return ++counts_.released, 0; }
  nvinfer1::IPluginResource* clone() noexcept override {
    if (cloning_) cloning_();
    return new Resource(counts_);
  }

 private:
  Counts& counts_;
  const std::function<void()> cloning_;
};

class PluginRegistry : public testing::Test {
 protected:
  // The codes of what was reported since the last call.
  std::vector<ErrorCode> reported() { return std::exchange(reported_, {}); }
  using Codes = std::vector<ErrorCode>;

  Codes reported_;
  const Registry::Report report_ = [this](nvinfer1::IErrorRecorder*, const char*, const Error& error) {
    reported_.push_back(error.code);
  };
  Registry parent_{nullptr, report_}, registry_{&parent_, report_};
  Creator one_{"one"}, twin_{"one"}, two_{"two"};
};

// What was loaded twice is there until it has been taken away twice.
TEST_F(PluginRegistry, CountsHowOftenALibraryIsLoaded) {
  const auto is_there = [&] { return registry_.getCreator("Counted", "1", "") != nullptr; };
  auto* first = registry_.loadLibrary(COUNTED_PLUGIN);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(registry_.loadLibrary(COUNTED_PLUGIN), first);
  EXPECT_TRUE(is_there());
  registry_.deregisterLibrary(first);
  EXPECT_TRUE(is_there());
  registry_.deregisterLibrary(first);
  EXPECT_FALSE(is_there());
  EXPECT_EQ(reported(), Codes());
  registry_.deregisterLibrary(first);  // once too often
  EXPECT_EQ(reported(), Codes{ErrorCode::invalid_argument});
  EXPECT_EQ(registry_.loadLibrary("/nowhere/plugin.so"), nullptr);
  EXPECT_EQ(reported(), Codes{ErrorCode::file_not_found});
}

TEST_F(PluginRegistry, HoldsOneCreatorOfANameVersionAndNamespace) {
  EXPECT_TRUE(registry_.registerCreator(one_, ""));
  EXPECT_TRUE(registry_.registerCreator(twin_, "elsewhere"));
  EXPECT_EQ(reported(), Codes());
  EXPECT_FALSE(registry_.registerCreator(twin_, ""));
  EXPECT_FALSE(registry_.registerCreator(two_, nullptr));
  EXPECT_EQ(reported(), Codes(2, ErrorCode::invalid_argument));
  EXPECT_EQ(registry_.getCreator("one", "1", ""), &one_);
  EXPECT_EQ(registry_.getCreator("one", "1", nullptr), &one_);
  EXPECT_EQ(registry_.getCreator("one", "1", "elsewhere"), &twin_);
  EXPECT_EQ(registry_.getCreator("one", "2", ""), nullptr);
  EXPECT_TRUE(registry_.deregisterCreator(one_));
  EXPECT_EQ(registry_.getCreator("one", "1", ""), nullptr);
  EXPECT_EQ(reported(), Codes()) << "a name that is not there is an answer";
  EXPECT_FALSE(registry_.deregisterCreator(one_));
  EXPECT_EQ(reported(), Codes{ErrorCode::invalid_argument});
}

// A library's creator whose name is taken is left out, and stays out when the library goes.
TEST_F(PluginRegistry, CreatorsOfOthersOutliveLibraries) {
  Creator counted("Counted");
  ASSERT_TRUE(registry_.registerCreator(counted, ""));
  auto* library = registry_.loadLibrary(COUNTED_PLUGIN);
  ASSERT_NE(library, nullptr);
  EXPECT_EQ(registry_.getCreator("Counted", "1", ""), &counted);
  registry_.deregisterLibrary(library);
  EXPECT_EQ(registry_.getCreator("Counted", "1", ""), &counted);
}

TEST_F(PluginRegistry, AsksItsParentUnlessToldNotTo) {
  ASSERT_TRUE(parent_.registerCreator(one_, ""));
  ASSERT_TRUE(registry_.registerCreator(two_, ""));
  const auto count = [&](auto list) {
    int32_t number = -1;
    (registry_.*list)(&number);
    return number;
  };
  EXPECT_EQ(registry_.getCreator("one", "1", ""), &one_);
  EXPECT_EQ(parent_.getCreator("two", "1", ""), nullptr);
  EXPECT_EQ(count(&Registry::getAllCreators), 1);
  EXPECT_EQ(count(&Registry::getAllCreatorsRecursive), 2);
  EXPECT_TRUE(registry_.isParentSearchEnabled());
  registry_.setParentSearchEnabled(false);
  EXPECT_FALSE(registry_.isParentSearchEnabled());
  EXPECT_EQ(registry_.getCreator("one", "1", ""), nullptr);
  EXPECT_EQ(count(&Registry::getAllCreatorsRecursive), 1);
}

TEST_F(PluginRegistry, TellsCreatorsOfTheV2FamilyTheirNamespace) {
  OldCreator old;
  EXPECT_TRUE(registry_.registerCreator(old, "mine"));
  EXPECT_STREQ(old.getPluginNamespace(), "mine");
  EXPECT_EQ(registry_.getCreator("old", "1", "mine"), &old);
  EXPECT_FALSE(registry_.registerCreator(old, "mine"));
  EXPECT_EQ(reported(), Codes{ErrorCode::invalid_argument});
}

TEST_F(PluginRegistry, RefusesCreatorsOfNoKind) {
  Stranger stranger;
  EXPECT_FALSE(registry_.registerCreator(stranger, ""));
  EXPECT_EQ(reported(), Codes{ErrorCode::invalid_argument});
}

// One report for each library that lies; those without creators are not held.
TEST_F(PluginRegistry, ReportsLibrariesThatLie) {
  const char* const paths[] = {LYING_PLUGINS};
  for (size_t i = 0; i < std::size(paths); ++i) {
    auto* library = registry_.loadLibrary(paths[i]);
    EXPECT_EQ(reported(), Codes{ErrorCode::invalid_argument}) << paths[i];
    const bool gives_nameless_creator = i == 5;
    EXPECT_EQ(library != nullptr, gives_nameless_creator) << paths[i];
    int32_t count = -1;
    registry_.getAllCreators(&count);
    EXPECT_EQ(count, 0) << paths[i];
    if (library) registry_.deregisterLibrary(library);
    EXPECT_EQ(reported(), Codes()) << paths[i];
  }
}

TEST_F(PluginRegistry, GivesLibrariesAFinderOfLoggers) {
  struct Log final : nvinfer1::ILogger {
    void log(Severity, const char* text) noexcept override { said.emplace_back(text); }
    std::vector<std::string> said;
  } log;
  struct Finder final : nvinfer1::ILoggerFinder {
    explicit Finder(nvinfer1::ILogger& found) : logger(found) {}
    nvinfer1::ILogger* findLogger() override { return &logger; }
    nvinfer1::ILogger& logger;
  } finder(log);
  Registry registry(nullptr, report_, &finder);
  auto* library = registry.loadLibrary(COUNTED_PLUGIN);
  ASSERT_NE(library, nullptr);
  EXPECT_EQ(log.said, std::vector<std::string>{"the library has found a logger"});
  registry.deregisterLibrary(library);
  EXPECT_EQ(reported(), Codes());
}

TEST_F(PluginRegistry, TakesAnotherParentButNotItself) {
  Registry other(nullptr, report_);
  ASSERT_TRUE(other.registerCreator(two_, ""));
  ASSERT_TRUE(registry_.set_parent(&other));
  EXPECT_EQ(registry_.getCreator("two", "1", ""), &two_);
  EXPECT_FALSE(other.set_parent(&registry_)) << "a circle";
  EXPECT_FALSE(registry_.set_parent(&registry_));
  EXPECT_EQ(registry_.getCreator("two", "1", ""), &two_);
  ASSERT_TRUE(registry_.set_parent(nullptr));
  EXPECT_EQ(registry_.getCreator("two", "1", ""), nullptr);
}

// S151.
TEST_F(PluginRegistry, GivesThreadsListsThatStayUntilCreatorsChange) {
  ASSERT_TRUE(parent_.registerCreator(one_, ""));
  ASSERT_TRUE(registry_.registerCreator(two_, ""));
  const auto read = [&] {
    for (int i = 0; i < 1000; ++i) {
      int32_t count = 0;
      auto* all = registry_.getAllCreatorsRecursive(&count);
      ASSERT_EQ(count, 2);
      EXPECT_EQ(all[0], &one_);
      EXPECT_EQ(all[1], &two_);
    }
  };
  std::thread other(read);
  read();
  other.join();
}

TEST_F(PluginRegistry, ResourcesAreClonedForTheFirstAndReleasedWithTheLast) {
  Resource::Counts counts;
  Resource mine(counts), other(counts);
  auto* clone = registry_.acquirePluginResource("key", &mine);
  ASSERT_NE(clone, nullptr);
  EXPECT_NE(clone, &mine);
  EXPECT_STREQ(clone->getInterfaceInfo().kind, "IPluginResource");
  EXPECT_EQ(registry_.acquirePluginResource("key", &other), clone);
  EXPECT_EQ(registry_.acquirePluginResource("key", nullptr), clone);
  EXPECT_EQ(counts.alive, 3);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(registry_.releasePluginResource("key"), 0);
  EXPECT_EQ(counts.released, 0);
  EXPECT_EQ(registry_.releasePluginResource("key"), 0);
  EXPECT_EQ(counts.released, 1);
  EXPECT_EQ(counts.alive, 2);
  EXPECT_EQ(reported(), Codes());
  EXPECT_EQ(registry_.releasePluginResource("key"), -1);
  EXPECT_EQ(reported(), Codes{ErrorCode::invalid_argument});
}

// Clones that come too late are released.
TEST_F(PluginRegistry, ResourcesMayUseTheRegistryWhileTheyAreCloned) {
  Resource::Counts counts;
  nvinfer1::IPluginResource* first = nullptr;
  Resource other(counts), mine(counts, [&] { first = registry_.acquirePluginResource("key", &other); });
  EXPECT_EQ(registry_.acquirePluginResource("key", &mine), first);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(counts.released, 1);
  EXPECT_EQ(counts.alive, 3);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(registry_.releasePluginResource("key"), 0);
  EXPECT_EQ(counts.released, 2);
  EXPECT_EQ(counts.alive, 2);
}

TEST_F(PluginRegistry, ResourcesThatAreLeftEndWithTheRegistry) {
  Resource::Counts counts;
  Resource mine(counts);
  {
    Registry registry(nullptr);
    ASSERT_NE(registry.acquirePluginResource("key", &mine), nullptr);
  }
  EXPECT_EQ(counts.released, 1);
  EXPECT_EQ(counts.alive, 1);
}

}  // namespace
}  // namespace lathe::plugin
