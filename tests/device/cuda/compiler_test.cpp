// SPDX-License-Identifier: Apache-2.0
// Compiling device code: the log, the cache on disk, and NVRTC itself where it is installed.
#include "device/cuda/nvrtc_compiler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "device/cuda/compile_log.h"
#include "fake_cuda/fake_device.h"

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSource = R"(
#include "lib/scale.cuh"
extern "C" __global__ void lathe_kernel(float* data, long count) {
  const long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < count) data[i] = scaled(data[i]);
}
)";

constexpr SourceHeader kHeaders[] = {
    {"lib/scale.cuh", "#pragma once\n#include \"lib/factor.cuh\"\nfloat scaled(float x) { return x * kFactor; }\n"},
    {"lib/factor.cuh", "#pragma once\nconstexpr float kFactor = 2;\n"},
    {"lib/unused.cuh", "#error never included\n"},
};

TEST(CompileLog, ResourcesAreTheMostOfAnyKernel) {
  const Resources used = parse_resources(
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas         .     1288 bytes stack frame, 3752 bytes spill stores, 3780 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers");
  EXPECT_EQ(used.registers, 255);
  EXPECT_EQ(used.stack_bytes, 1288);
  EXPECT_EQ(used.spill_store_bytes, 3752);
  EXPECT_EQ(used.spill_load_bytes, 3780);
  EXPECT_EQ(parse_resources("").registers, 0);
  EXPECT_EQ(parse_resources(" registers\n bytes spill stores").registers, 0);
}

TEST(CompileLog, TheFirstErrorCounts) {
  EXPECT_EQ(first_error("k.cu(1): warning: x\nk.cu(2): error: y\nk.cu(3): error: z\n"), "k.cu(2): error: y");
  EXPECT_EQ(first_error("odd\nthings"), "odd");
  EXPECT_EQ(first_error(""), "");
}

TEST(IncludeClosure, FollowsIncludes) {
  const auto names = [](std::string_view source) {
    std::vector<std::string> found;
    for (const SourceHeader& header : include_closure(source, kHeaders)) found.emplace_back(header.name);
    return found;
  };
  EXPECT_EQ(names(kSource), (std::vector<std::string>{"lib/scale.cuh", "lib/factor.cuh"}));
  EXPECT_EQ(names("#  include  <lib/factor.cuh>"), (std::vector<std::string>{"lib/factor.cuh"}));
  EXPECT_EQ(names("#include \"other.h\"\n#define X\n#include \n#include \"unclosed"), (std::vector<std::string>{}));
}

class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("lathe_cache_test_{}", ::getpid());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static Digest key(int number) { return digest_of(std::as_bytes(std::span(&number, 1))); }
  CubinCache cache() const { return CubinCache(folder_.string()); }

  fs::path folder_;
};

TEST_F(CacheTest, KeepsCode) {
  const std::vector<std::byte> code = bytes_of("some code");
  EXPECT_FALSE(cache().find(key(1)).has_value());
  cache().store(key(1), code);
  EXPECT_EQ(cache().find(key(1)), code);
  EXPECT_FALSE(cache().find(key(2)).has_value());
}

TEST_F(CacheTest, DamagedFilesAreMisses) {
  const std::vector<std::byte> code = bytes_of("some code that is a little longer");
  cache().store(key(1), code);
  const std::string path = cache().path(key(1));
  const auto size = static_cast<int64_t>(fs::file_size(path));
  for (int64_t at = 0; at < size; ++at) {
    cache().store(key(1), code);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
    file.close();
    EXPECT_FALSE(cache().find(key(1)).has_value()) << at;
  }
  for (int64_t length = 0; length < size; ++length) {
    cache().store(key(1), code);
    fs::resize_file(path, length);
    EXPECT_FALSE(cache().find(key(1)).has_value()) << length;
  }
  cache().store(key(2), code);
  fs::copy_file(cache().path(key(2)), path, fs::copy_options::overwrite_existing);
  EXPECT_FALSE(cache().find(key(1)).has_value()) << "another key's file";
}

TEST_F(CacheTest, ThreadsMayWriteTheSame) {
  const std::vector<std::byte> code(100000, std::byte{3});
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 20; ++n) {
        cache().store(key(n % 3), code);
        const auto found = cache().find(key(n % 3));
        if (!found || *found != code) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (const auto& file : fs::recursive_directory_iterator(folder_))
    EXPECT_NE(file.path().extension(), ".tmp") << file.path();
}

TEST_F(CacheTest, UnusableFoldersCostNothing) {
  const CubinCache off(""), impossible("/proc/nowhere");
  for (const CubinCache& cache : {off, impossible}) {
    cache.store(key(1), bytes_of("code"));
    EXPECT_FALSE(cache.find(key(1)).has_value());
  }
}

TEST_F(CacheTest, WhatWasNotUsedForLongestGoes) {
  constexpr size_t kCode = 1000;
  const CubinCache small(folder_.string(), 256 * 5 * kCode);  // four in each folder, with their headers
  const auto in_one_folder = [](int i) {
    Digest key{};
    key[1] = static_cast<std::byte>(i);
    return key;
  };
  const std::vector<std::byte> code(kCode, std::byte{7});
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 4; ++i) {
    small.store(in_one_folder(i), code);
    fs::last_write_time(small.path(in_one_folder(i)), now - std::chrono::hours(10 - i));
  }
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(fs::exists(small.path(in_one_folder(i)))) << i;
  EXPECT_TRUE(small.find(in_one_folder(0)));  // notes the use
  small.store(in_one_folder(4), code);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(small.find(in_one_folder(i)).has_value(), i != 1 && i != 2) << i;
  Digest elsewhere{};
  elsewhere[0] = std::byte{1};
  small.store(elsewhere, code);
  EXPECT_TRUE(small.find(elsewhere));
  EXPECT_TRUE(small.find(in_one_folder(4)));
}

TEST(CacheFolder, LimitComesFromTheEnvironment) {
  unsetenv("LATHE_CACHE_LIMIT");
  EXPECT_EQ(default_cache_limit(), size_t{1024} << 20);
  for (const auto& [given, mebibytes] :
       {std::pair<const char*, size_t>{"64", 64}, {"0", 0}, {"1 GB", 1024}, {"-1", 1024}}) {
    setenv("LATHE_CACHE_LIMIT", given, 1);
    EXPECT_EQ(default_cache_limit(), mebibytes << 20) << given;
  }
  unsetenv("LATHE_CACHE_LIMIT");
}

TEST(CacheFolder, ComesFromTheEnvironment) {
  setenv("LATHE_CACHE_DIR", "/tmp/given", 1);
  EXPECT_EQ(default_cache_folder(), "/tmp/given");
  setenv("LATHE_CACHE_DIR", "", 1);
  EXPECT_EQ(default_cache_folder(), "");
  unsetenv("LATHE_CACHE_DIR");
  setenv("XDG_CACHE_HOME", "/tmp/xdg", 1);
  EXPECT_EQ(default_cache_folder(), "/tmp/xdg/lathe");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(default_cache_folder(), "/home/me/.cache/lathe");
}

TEST(Nvrtc, MissingLibraryIsNamed) {
  const std::string names[] = {"/nowhere/libnvrtc.so.13"};
  const auto nvrtc = open_nvrtc(names);
  EXPECT_FAILS(nvrtc, nvrtc_missing);
  EXPECT_NE(nvrtc.error().message.find("/nowhere/libnvrtc.so.13"), std::string::npos);
}

TEST(Nvrtc, OtherLibrariesAreRefused) {
  const std::string names[] = {FAKE_CUDA_DRIVER};
  EXPECT_FAILS(open_nvrtc(names), cuda_symbol_missing);
}

// The real one, whatever stands in for it elsewhere in this process.
const Result<std::unique_ptr<const Nvrtc>>& real_nvrtc() {
  static const std::string names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so.13",
                                      "/usr/local/cuda/lib64/libnvrtc.so.12"};
  static const auto& opened = *new Result<std::unique_ptr<const Nvrtc>>(open_nvrtc(names));
  return opened;
}

#define NEEDS_NVRTC() \
  if (!real_nvrtc()) GTEST_SKIP() << real_nvrtc().error().message

class NvrtcTest : public CacheTest {
 protected:
  Result<std::unique_ptr<NvrtcCompiler>> compiler(std::string_view target = "cuda-sm_90") {
    CompilerOptions options;
    options.nvrtc = {(*real_nvrtc())->path};
    return NvrtcCompiler::create(target, kHeaders, options, folder_.string());
  }
  size_t files() const {
    size_t count = 0;
    if (fs::exists(folder_))
      for (const auto& file : fs::recursive_directory_iterator(folder_)) count += file.is_regular_file();
    return count;
  }
};

TEST_F(NvrtcTest, CompilesForEachArchitectureThatItKnows) {
  NEEDS_NVRTC();
  for (const char* target : {"cuda-sm_75", "cuda-sm_80", "cuda-sm_90", "cuda-sm_100", "cuda-sm_120"}) {
    const auto made = compiler(target);
    if (!made) {
      EXPECT_EQ(made.error().code, ErrorCode::nvrtc_unsuitable);
      continue;
    }
    const auto code = (*made)->compile(kSource);
    ASSERT_OK(code);
    EXPECT_EQ(std::memcmp(code->data(), "\177ELF", 4), 0);
  }
  EXPECT_FAILS(compiler("cuda-sm_70"), cuda_architecture_unsupported);
  EXPECT_FAILS(compiler("cpu"), invalid_argument);
}

TEST_F(NvrtcTest, CompiledCodeIsKept) {
  NEEDS_NVRTC();
  const auto first = (*compiler())->compile(kSource);
  ASSERT_OK(first);
  EXPECT_EQ(files(), 1u);
  auto least = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 10 && least >= std::chrono::milliseconds(200); ++i) {  // the machine may be busy
    const auto start = std::chrono::steady_clock::now();
    const auto again = (*compiler())->compile(kSource);
    least = std::min(least, std::chrono::steady_clock::now() - start);
    ASSERT_OK(again);
    EXPECT_EQ(*first, *again);
  }
  EXPECT_LT(least, std::chrono::milliseconds(200));
  ASSERT_OK((*compiler("cuda-sm_80"))->compile(kSource));
  EXPECT_EQ(files(), 2u);
}

// The stand-in compiles it for the host; it is where code is kept that counts.
class KeptCodeTest : public CacheTest {
 protected:
  Result<std::vector<std::byte>> compile(bool keeps_code, const fs::path& nvrtc = FAKE_NVRTC) const {
    CompilerOptions options;
    options.nvrtc = {nvrtc.string()};
    options.program = "";
    options.keeps_code = keeps_code;
    const auto made = NvrtcCompiler::create("cuda-sm_90", {}, options, folder_.string());
    return made ? (*made)->compile("extern \"C\" void lathe_kernel(float*) {}") : fail(made.error());
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    if (fs::exists(folder_ / "cubin"))
      for (const auto& file : fs::recursive_directory_iterator(folder_ / "cubin"))
        if (file.is_regular_file()) found.push_back(file.path());
    return found;
  }
};

TEST_F(KeptCodeTest, IsNeitherReadNorWrittenWhenTurnedOff) {
  ASSERT_OK(compile(/*keeps_code=*/false));
  EXPECT_TRUE(files().empty());
  ASSERT_OK(compile(/*keeps_code=*/true));
  ASSERT_EQ(files().size(), 1u);
  const auto seen = fs::file_time_type::clock::now() - std::chrono::hours(5);
  fs::last_write_time(files()[0], seen);  // a use would be noted
  ASSERT_OK(compile(/*keeps_code=*/false));
  EXPECT_EQ(fs::last_write_time(files()[0]), seen);
}

// Corrections of a compiler have its version number.
TEST_F(KeptCodeTest, IsOfOneBuildOfNvrtc) {
  fs::create_directories(folder_);
  const auto copy = [&](const char* name, const char* more) {
    const fs::path path = folder_ / name;
    fs::copy_file(FAKE_NVRTC, path);
    std::ofstream(path, std::ios::app | std::ios::binary) << more;
    return path;
  };
  const fs::path first = copy("first.so", "1"), same = copy("same.so", "1"), other = copy("other.so", "2");
  ASSERT_OK(compile(/*keeps_code=*/true, first));
  ASSERT_OK(compile(/*keeps_code=*/true, same));
  EXPECT_EQ(files().size(), 1u);
  ASSERT_OK(compile(/*keeps_code=*/true, other));
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(NvrtcTest, ErrorsHaveTheFirstLine) {
  NEEDS_NVRTC();
  const auto code = (*compiler())->compile("extern \"C\" __global__ void lathe_kernel() { unheard_of(); }");
  EXPECT_FAILS(code, kernel_compile_failed);
  EXPECT_NE(code.error().message.find("unheard_of"), std::string::npos) << code.error().message;
  EXPECT_EQ(files(), 0u);
}

TEST_F(NvrtcTest, SpillsAreRefused) {
  NEEDS_NVRTC();
  const auto code = (*compiler())->compile(R"(
extern "C" __global__ void __launch_bounds__(1024, 2) lathe_kernel(float* a, long n) {
  float v[64];
  #pragma unroll
  for (int i = 0; i < 64; ++i) v[i] = a[i * n + threadIdx.x];
  __syncthreads();
  for (long j = 0; j < n; ++j)
    #pragma unroll
    for (int i = 0; i < 64; ++i) v[i] = v[i] * v[(i + 7) % 64] + 1;
  #pragma unroll
  for (int i = 0; i < 64; ++i) a[i * n + threadIdx.x] = v[i];
}
)");
  EXPECT_FAILS(code, kernel_spills);
}

TEST_F(NvrtcTest, ThreadsCompileAtTheSameTime) {
  NEEDS_NVRTC();
  const auto made = *compiler();
  std::vector<std::thread> threads;
  std::atomic<int> compiled = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      const std::string source = fmt::format("// {}\n{}", i % 2, kSource);
      if (made->compile(source)) ++compiled;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compiled, 4);
  EXPECT_EQ(files(), 2u);
}

}  // namespace
}  // namespace lathe::cuda
