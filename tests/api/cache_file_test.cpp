// SPDX-License-Identifier: Apache-2.0
// Files of runtime caches: shared by processes, some of which are killed.
#include "api/runtime/cache_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/file_lock.h"

namespace lathe::api {
namespace {

namespace fs = std::filesystem;

Digest key_of(int number) { return digest_of(std::as_bytes(std::span(&number, 1))); }

struct Lines final : Log {
  void write(Severity severity, std::string_view line) override {
    (severity == Severity::warning ? warnings : others).emplace_back(line);
  }
  std::vector<std::string> warnings, others;
};

class CacheFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lathe_cache_file_XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ / "deep" / "kernels.cache";
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }

  static void compile(KernelCache& cache, int number, size_t bytes = 4096) {
    (void)cache.get(key_of(number), [&]() -> Result<std::vector<std::byte>> {
      return std::vector(bytes, static_cast<std::byte>(number));
    });
  }
  size_t kernels_of_file() const {
    KernelCache read("library=1\n");
    const Result<size_t> bytes = load_kernels(read, path_.string());
    EXPECT_TRUE(bytes) << bytes.error().to_string();
    return read.counts().kernels;
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path_.parent_path()), fs::directory_iterator()));
  }

  fs::path folder_, path_;
};

// S225: what is saved is there for the next one, with what others have saved.
TEST_F(CacheFileTest, KeepsWhatEveryWriterHas) {
  Lines log;
  for (int writer = 0; writer < 3; ++writer) {
    CacheFile file(path_.string(), "library=1\n", 1 << 20);
    if (writer != 1) file.load(log);
    compile(file.kernels(), writer);
    file.save(log);
    const auto time = fs::last_write_time(path_);
    file.save(log);  // nothing is new
    EXPECT_EQ(fs::last_write_time(path_), time);
  }
  EXPECT_EQ(kernels_of_file(), 3u);
  EXPECT_EQ(log.warnings.size(), 0u);
  EXPECT_EQ(files(), 2u) << "the file and its lock";
}

TEST_F(CacheFileTest, AnEmptyCacheWritesNothing) {
  const KernelCache empty("library=1\n");
  const Result<size_t> bytes = save_kernels(empty, path_.string());
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, 0u);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(CacheFileTest, AFolderIsNoFile) {
  KernelCache cache("library=1\n");
  compile(cache, 1);
  for (const std::string& path : {std::string(), folder_.string() + "/"}) {
    const Result<size_t> bytes = save_kernels(cache, path);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_TRUE(fs::is_empty(folder_)) << "no lock is left";
}

// What cannot be read is one warning, and replaced.
TEST_F(CacheFileTest, BeginsAfreshWhereTheFileIsOfNoUse) {
  fs::create_directories(path_.parent_path());
  KernelCache later("library=2\n");
  compile(later, 5);
  const std::vector<std::byte> of_later = later.serialize();
  const std::string contents[] = {"",
                                  "garbage",
                                  std::string(1 << 16, '\0'),
                                  {reinterpret_cast<const char*>(of_later.data()), of_later.size()},
                                  {reinterpret_cast<const char*>(of_later.data()), of_later.size() / 2}};
  for (const std::string& content : contents) {
    std::ofstream(path_, std::ios::binary) << content;
    Lines log;
    CacheFile file(path_.string(), "library=1\n", 1 << 20);
    file.load(log);
    ASSERT_EQ(log.warnings.size(), 1u);
    EXPECT_NE(log.warnings[0].find("the runtime cache is empty at first"), std::string::npos) << log.warnings[0];
    compile(file.kernels(), 1);
    file.save(log);
    EXPECT_EQ(log.warnings.size(), 1u);
    EXPECT_EQ(kernels_of_file(), 1u);
  }
  fs::remove(path_);
  fs::create_directory(path_);
  Lines log;
  CacheFile folder(path_.string(), "library=1\n", 1 << 20);
  folder.load(log);
  compile(folder.kernels(), 1);
  folder.save(log);
  EXPECT_EQ(log.warnings.size(), 2u) << "neither read nor written";
}

TEST_F(CacheFileTest, AFullDiskLeavesTheOldFile) {
  KernelCache small("library=1\n"), large("library=1\n");
  compile(small, 1);
  compile(large, 2, 1 << 20);
  ASSERT_TRUE(save_kernels(small, path_.string()));
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 16, 1 << 16};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const Result<size_t> saved = save_kernels(large, path_.string());
    ::_exit(saved ? 1 : saved.error().code == ErrorCode::file_read ? 0 : 2);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(kernels_of_file(), 1u);
  EXPECT_EQ(files(), 2u);
}

// As root, who may write everywhere, a folder below a file is what cannot be written.
TEST_F(CacheFileTest, AFolderThatCannotBeWrittenIsAWarning) {
  std::ofstream(folder_ / "file") << "text";
  Lines log;
  CacheFile file((folder_ / "file" / "kernels.cache").string(), "library=1\n", 1 << 20);
  file.load(log);
  compile(file.kernels(), 1);
  file.save(log);
  file.save(log);
  ASSERT_EQ(log.warnings.size(), 1u) << "one for each thing that is not saved";
  EXPECT_NE(log.warnings[0].find("the runtime cache is not saved"), std::string::npos) << log.warnings[0];
}

TEST_F(CacheFileTest, HoldsNoMoreThanItsLimit) {
  KernelCache cache("library=1\n", 10000);
  for (int i = 0; i < 5; ++i) {
    compile(cache, i);
    ASSERT_TRUE(save_kernels(cache, path_.string()));
  }
  EXPECT_LE(fs::file_size(path_), 11000u);
  EXPECT_EQ(kernels_of_file(), 2u);
}

// S238: writers that are killed at any time leave a file that is whole, and no lock.
TEST_F(CacheFileTest, ProcessesThatAreKilledDamageNothing) {
  constexpr int kWriters = 6, kRounds = 40, kKernels = 4;
  const auto start = [&](int number) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    for (int round = 0;; ++round) {
      KernelCache cache("library=1\n");
      for (int i = 0; i < kKernels; ++i) compile(cache, number * kKernels + i, 1 << 16);
      if (!save_kernels(cache, path_.string())) ::_exit(1);
      KernelCache read("library=1\n");
      if (!load_kernels(read, path_.string()) || read.counts().kernels < kKernels) ::_exit(2);
    }
  };
  std::vector<pid_t> writers;
  for (int i = 0; i < kWriters; ++i) writers.push_back(start(i));
  for (int round = 0; round < kRounds; ++round) {
    ::usleep(20000 + round * 977);
    const auto victim = static_cast<size_t>(round % kWriters);
    ::kill(writers[victim], SIGKILL);
    int status = 0;
    ::waitpid(writers[victim], &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer had failed by itself: " << WEXITSTATUS(status);
    writers[victim] = start(static_cast<int>(victim));
  }
  for (const pid_t writer : writers) {
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
  }
  for (int i = 0; i < kWriters; ++i) {
    KernelCache cache("library=1\n");
    compile(cache, i * kKernels, 1 << 16);
    ASSERT_TRUE(save_kernels(cache, path_.string()));
  }
  EXPECT_GE(kernels_of_file(), static_cast<size_t>(kWriters));
  EXPECT_EQ(files(), 2u) << "what the killed ones had begun is gone";
}

// S238: a lock that another program holds by flock(2).
TEST_F(CacheFileTest, WaitsForTheLockOfOthers) {
  KernelCache cache("library=1\n");
  compile(cache, 1);
  ASSERT_TRUE(save_kernels(cache, path_.string()));
  const int other = ::open((path_.string() + ".lock").c_str(), O_RDWR);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  compile(cache, 2);
  const auto begin = std::chrono::steady_clock::now();
  const Result<size_t> refused = save_kernels(cache, path_.string());
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("another process has held the lock"), std::string::npos);
  EXPECT_GE(waited.count(), 10);
  ASSERT_EQ(::flock(other, LOCK_SH), 0);
  EXPECT_EQ(kernels_of_file(), 1u) << "readers share it";
  ::close(other);
  EXPECT_TRUE(save_kernels(cache, path_.string()));
  EXPECT_EQ(kernels_of_file(), 2u);
}

}  // namespace
}  // namespace lathe::api
