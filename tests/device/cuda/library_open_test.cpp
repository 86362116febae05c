// SPDX-License-Identifier: Apache-2.0
// Opening the optional libraries: each thing that may be wrong with them has its error.
#include <array>

#include "device/cuda/cublaslt.h"
#include "device/cuda/cudnn.h"
#include "device/cuda/environment.h"
#include "fake_cuda/fake_device.h"
#include "fake_cuda/fake_library.h"

namespace lathe::cuda {
namespace {

class LibraryOpenTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    cublaslt_.reset();
  }
  void TearDown() override {
    cublaslt_.reset();
    FakeDeviceTest::TearDown();
  }
  template <class T>
  static void expect_unsuitable(const Result<T>& opened, std::string_view what) {
    EXPECT_FAILS(opened, library_unsuitable);
    EXPECT_NE(opened.error().message.find(what), std::string::npos) << opened.error().message;
  }
  FakeLibrary cublaslt_{FAKE_CUBLASLT}, cudnn_{FAKE_CUDNN};
};

TEST_F(LibraryOpenTest, CublasLtTellsItsVersion) {
  const auto opened = open_cublaslt(std::array<std::string, 2>{"/nowhere/libcublasLt.so", FAKE_CUBLASLT});
  ASSERT_OK(opened);
  EXPECT_EQ((*opened)->version_text(), "13.1.0");
  EXPECT_EQ((*opened)->path, FAKE_CUBLASLT);
}

TEST_F(LibraryOpenTest, MissingLibrariesAreNamedWithTheRemedy) {
  const auto opened = open_cublaslt(std::array<std::string, 1>{"/nowhere/libcublasLt.so"});
  EXPECT_FAILS(opened, library_missing);
  for (const char* part : {"/nowhere/libcublasLt.so", "LATHE_CUBLASLT", "nvidia-cublas"})
    EXPECT_NE(opened.error().message.find(part), std::string::npos) << part;
}

TEST_F(LibraryOpenTest, VersionsThatLatheDoesNotCallAreRefused) {
  for (const size_t version : {110900, 140000}) {
    cublaslt_.set_version(version);
    expect_unsuitable(open_cublaslt(std::array<std::string, 1>{FAKE_CUBLASLT}), "12 or 13");
  }
}

TEST_F(LibraryOpenTest, CudnnTellsItsVersion) {
  const auto opened = open_cudnn(std::array<std::string, 1>{FAKE_CUDNN});
  ASSERT_OK(opened);
  EXPECT_EQ((*opened)->version_text(), "9.19.0");
  EXPECT_FAILS(open_cudnn(std::array<std::string, 1>{"/nowhere/libcudnn.so.9"}), library_missing);
  for (const size_t version : {8907, 100000}) {
    cudnn_.set_version(version);
    expect_unsuitable(open_cudnn(std::array<std::string, 1>{FAKE_CUDNN}), "calls version 9");
  }
  cudnn_.set_version(8907);
  expect_unsuitable(open_cudnn(std::array<std::string, 1>{FAKE_CUDNN}), "8.9.7");
  cudnn_.reset();
}

TEST_F(LibraryOpenTest, MissingFunctionsAreNamed) {
  expect_unsuitable(open_cublaslt(std::array<std::string, 1>{FAKE_CUBLASLT_WITHOUT_CHECK}), "cublasLtMatmulAlgoCheck");
}

TEST_F(LibraryOpenTest, TheEnvironmentNamesThePath) {
  setenv("LATHE_CUBLASLT", "/somewhere/libcublasLt.so", 1);
  EXPECT_EQ(cublaslt_names(), std::vector<std::string>{"/somewhere/libcublasLt.so"});
  unsetenv("LATHE_CUBLASLT");
  EXPECT_EQ(cublaslt_names().front(), "libcublasLt.so.13");
  setenv("LATHE_CUBLASLT", FAKE_CUBLASLT, 1);
}

TEST_F(LibraryOpenTest, TheDoctorTellsWhatIsThere) {
  setenv("LATHE_CUBLASLT", FAKE_CUBLASLT, 1);
  const Survey found_here = survey();
  bool found = false;
  for (const Survey::Check& check : found_here.checks)
    if (check.name == "cuBLASLt") found = check.good && check.detail.find("13.1.0") != std::string::npos;
  EXPECT_TRUE(found);
}

TEST_F(LibraryOpenTest, TheDoctorTellsWhoCompiles) {
  setenv("LATHE_NVRTC", FAKE_NVRTC, 1);
  const auto check_of = [](const char* name) {
    for (const Survey::Check& check : survey().checks)
      if (check.name == name) return check;
    return Survey::Check{};
  };
  EXPECT_TRUE(check_of("NVRTC").good);
  EXPECT_TRUE(check_of("lathe-compiler").good);
  EXPECT_NE(check_of("lathe-compiler").detail.find("lathe-compiler"), std::string::npos);
  setenv("LATHE_COMPILER", "", 1);
  EXPECT_TRUE(check_of("lathe-compiler").good);
  setenv("LATHE_COMPILER", "/nowhere/lathe-compiler", 1);
  EXPECT_FALSE(check_of("lathe-compiler").good);
  EXPECT_NE(check_of("lathe-compiler").detail.find("/nowhere/lathe-compiler"), std::string::npos);
  EXPECT_NE(check_of("lathe-compiler").remedy, "");
  EXPECT_TRUE(check_of("NVRTC").good);
  unsetenv("LATHE_COMPILER");
  unsetenv("LATHE_NVRTC");
}

}  // namespace
}  // namespace lathe::cuda
