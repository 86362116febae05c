// SPDX-License-Identifier: Apache-2.0
// Source of a kernel in which numbers that it is given are known.
#include "device/cuda/known_numbers.h"

#include <gtest/gtest.h>

namespace lathe::cuda {
namespace {

Launch launch_of(std::initializer_list<LaunchArg::Kind> kinds) {
  Launch launch;
  launch.entry = "lathe_kernel";
  for (const LaunchArg::Kind kind : kinds) launch.args.push_back({kind, 0, Expr::symbol(0)});
  return launch;
}

const Launch kLaunch = launch_of({LaunchArg::tensor_map, LaunchArg::input, LaunchArg::number, LaunchArg::number});
constexpr const char* kText =
    "#include \"a.cuh\"\nKERNEL(64, 1) void lathe_kernel(LATHE_TENSOR_MAP map, A::Type* A_data, long n0,\n long n1) {\n"
    "  if (n0 > 1) {}\n}\n";

TEST(KnownNumbers, BeginTheKernel) {
  const int64_t numbers[] = {128, -3};
  const Result<std::string> text = with_known_numbers(kText, kLaunch, numbers);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text,
            "#include \"a.cuh\"\nKERNEL(64, 1) void lathe_kernel(LATHE_TENSOR_MAP map, A::Type* A_data, long n0,\n"
            " long n1) {\n  n0 = static_cast<long>(128UL);\n  n1 = static_cast<long>(18446744073709551613UL);\n"
            "  if (n0 > 1) {}\n}\n");
}

TEST(KnownNumbers, OtherKernelsAreRefused) {
  const int64_t numbers[] = {1, 2};
  Launch other = kLaunch;
  other.entry = "another";
  EXPECT_EQ(with_known_numbers(kText, other, numbers).error().message, "the source has no kernel 'another'");
  const Launch shorter = launch_of({LaunchArg::input, LaunchArg::number});
  EXPECT_EQ(with_known_numbers(kText, shorter, numbers).error().message,
            "the source's kernel 'lathe_kernel' has 4 parameters, and it is launched with 2");
  for (const char* text : {"", "void lathe_kernel(", "void lathe_kernel(long n)", "void lathe_kernel"})
    EXPECT_EQ(with_known_numbers(text, kLaunch, numbers).error().code, ErrorCode::kernel_compile_failed) << text;
}

}  // namespace
}  // namespace lathe::cuda
