// SPDX-License-Identifier: Apache-2.0
// Which launches become one, and what its text is. Networks: tests/kernels/joined.graph.
#include "kernels/cuda/joined_launch.h"

#include <gtest/gtest.h>

#include "kernels/cuda/emulated_module.h"
#include "kernels/cuda/headers.h"
#include "kernels/cuda/kernel_check.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

// A copy of n elements, whose text says so.
SourceLaunch copy_of(const Expr& n, uint32_t block = 256, const char* header = nullptr) {
  Source source("copy/copy.cuh");
  if (header) source.include(header);
  const std::vector<int64_t> symbols = {6};
  const Operand x = symbolic_operand(DType::f32, {n}, symbols);
  source.input(0, x, "In");
  source.output(0, x, "Out");
  return source.finish("copy_rows<1, 1, unsigned>(In_, Out_);", {ceildiv(n, int64_t{block}), 1, 1}, block, 16);
}

TEST(JoinedLaunch, PartsAreRowsOfTheGrid) {
  const Expr n = Expr::symbol(0);
  const std::vector<SourceLaunch> parts = {copy_of(n), copy_of(1000), copy_of(3)};
  const std::optional<SourceLaunch> joined = joined_launch(parts, JoinedParts::at_once);
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->launch.grid[0], max(max(ceildiv(n, int64_t{256}), 4), 1));
  EXPECT_EQ(joined->launch.grid[1], Expr(3));
  EXPECT_EQ(joined->launch.block, 256u);
  EXPECT_EQ(joined->launch.shared_bytes, 16u);
  EXPECT_TRUE(joined->launch.overlaps);
  EXPECT_EQ(joined->launch.args.size(), parts[0].launch.args.size() + 1 + 2 * parts[1].launch.args.size())
      << "an open number of blocks is an argument";
  EXPECT_NE(joined->source.find("block_y() == 1 && block_x() < 4L"), std::string::npos) << joined->source;
  const Result<std::vector<std::byte>> object = compile_for_emulator(joined->source);
  EXPECT_TRUE(object) << object.error().message;
}

TEST(JoinedLaunch, PartsInTurnHaveOneBlock) {
  const Expr n = Expr::symbol(0);
  const std::vector<SourceLaunch> parts = {copy_of(3, 32), copy_of(n)};
  const std::optional<SourceLaunch> joined = joined_launch(parts, JoinedParts::in_turn);
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->launch.grid[0], max(1, ceildiv(n, int64_t{256})));
  EXPECT_EQ(joined->launch.grid[1], Expr(1));
  EXPECT_EQ(joined->launch.block, 256u);
  for (const char* text :
       {"#define LATHE_PARTS_IN_TURN\n", "  begin_part(32);\n  if (thread_x() < 32 && block_x() < 1L) part0::run(",
        "  barrier_of_parts();\n  begin_part(256);\n  if (thread_x() < 256 && block_x() < p1_blocks) part1::run("})
    EXPECT_NE(joined->source.find(text), std::string::npos) << text << " in " << joined->source;
  const Result<std::vector<std::byte>> object = compile_for_emulator(joined->source);
  EXPECT_TRUE(object) << object.error().message;
}

TEST(JoinedLaunch, Refusals) {
  const SourceLaunch copy = copy_of(100);
  const auto with = [&](auto change) {
    SourceLaunch other = copy;
    change(other);
    return joined_launch(std::vector<SourceLaunch>{copy, other}, JoinedParts::at_once).has_value();
  };
  EXPECT_TRUE(with([](SourceLaunch&) {}));
  EXPECT_FALSE(with([](SourceLaunch& other) { other.launch.block = 128; }));
  EXPECT_FALSE(with([](SourceLaunch& other) { other.launch.cluster = 2; }));
  EXPECT_FALSE(with([](SourceLaunch& other) { other.launch.grid[1] = 2; }));
  EXPECT_FALSE(with([](SourceLaunch& other) { other.launch.grid[2] = 2; }));
  EXPECT_FALSE(with([](SourceLaunch& other) { other.launch.maps.emplace_back(); }));
  EXPECT_FALSE(with([](SourceLaunch& other) { other.launch.overlaps = false; }));
  EXPECT_FALSE(with([](SourceLaunch& other) { other.launch.library = kCublasLtName; }));
  EXPECT_FALSE(with([](SourceLaunch& other) { other.source = "extern \"C\" void lathe_kernel();"; }));
  EXPECT_FALSE(with([](SourceLaunch& other) {  // whose blocks are no short ones
    other.source.replace(other.source.find("copy/copy.cuh"), 13, "gemm/gemm.cuh");
  }));
  EXPECT_FALSE(with([](SourceLaunch& other) { other.launch.args.resize(kMaxLaunchArgs - 2); }));
}

// As generic kernels have one, whose programs compute in f64.
TEST(JoinedLaunch, PartsWithASecondHeader) {
  const std::vector<SourceLaunch> parts = {copy_of(6, 256, "lib/math_f64.cuh"), copy_of(7),
                                           copy_of(8, 256, "lib/math_f64.cuh")};
  const std::optional<SourceLaunch> joined = joined_launch(parts, JoinedParts::at_once);
  ASSERT_TRUE(joined);
  const Result<std::vector<std::byte>> object = compile_for_emulator(joined->source);
  EXPECT_TRUE(object) << object.error().message;
}

// Parts of one source see each other's headers.
TEST(JoinedLaunch, HeadersOfPartsGoTogether) {
  std::string source;
  for (const Header& header : headers())
    for (const std::string_view folder : joined_folders())
      if (const std::string_view name = header.name; name.starts_with(folder) && name.ends_with(".cuh"))
        source += fmt::format("#include \"{}\"\n", name);
  EXPECT_NE(source.find("generic/select.cuh"), std::string::npos);
  const Result<std::vector<std::byte>> object = compile_for_emulator(source + "LATHE_PARAMETERS(0)\n");
  EXPECT_TRUE(object) << object.error().message;
}

}  // namespace
}  // namespace lathe::cuda
