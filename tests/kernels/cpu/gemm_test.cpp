// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/gemm.h"

#include <bit>
#include <limits>

#include "kernels/cpu/gemm/pair_blocks.h"
#include "kernels/cpu/gemm/pairs.h"
#include "kernels/cpu/gemm/split_floats.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/reference.h"

namespace lathe::cpu {
Result<std::unique_ptr<Kernel>> make_gemm(const Record& record);

namespace {

using namespace testing;

struct Case {
  std::vector<int64_t> batch;  // of the output
  int64_t m = 1, k = 1, n = 1;
  bool packed = true, batched_b = false, transpose_a = false, transpose_b = false, bf16 = false;
  size_t a_rank = 0, b_rank = 0;  // batch dimensions that a plain operand has, the last ones
  gemm::Blocking blocking;
  std::string program;  // text; operands are drawn at random
  int threads = 1;

  std::string text() const {
    return fmt::format(
        "batch rank {} m {} k {} n {} packed {} batched {} ta {} tb {} width {} block {} k_block {} "
        "columns {} threads {} ranks {} {} bf16 {} program '{}'",
        batch.size(), m, k, n, packed, batched_b, transpose_a, transpose_b, blocking.width, blocking.row_block,
        blocking.k_block, blocking.split_columns, threads, a_rank, b_rank, bf16, program);
  }
};

std::vector<int64_t> with(std::vector<int64_t> dims, int64_t rows, int64_t columns) {
  dims.push_back(rows);
  dims.push_back(columns);
  return dims;
}

// A matrix or batch of them, with rows `extra` elements longer than needed, or transposed.
TestTensor matrix(std::vector<int64_t> dims, bool transposed, int64_t extra) {
  const size_t r = dims.size();
  std::vector<int64_t> strides(r);
  strides[r - (transposed ? 2 : 1)] = 1;
  int64_t stride = dims[r - (transposed ? 2 : 1)] + extra;
  strides[r - (transposed ? 1 : 2)] = stride;
  stride *= dims[r - (transposed ? 1 : 2)];
  for (size_t d = r - 2; d-- > 0; stride *= dims[d]) strides[d] = stride;
  return TestTensor::strided(dims, strides);
}

std::vector<TestTensor> random_operands(int count, const TensorArg& out) {
  std::vector<TestTensor> operands;
  for (int i = 0; i < count; ++i) {
    std::vector<int64_t> dims(out.dims, out.dims + out.rank);
    // Per column, per row, scalar, full, or any mixture.
    const int64_t kind = pick(0, 4);
    for (int d = 0; d < out.rank; ++d)
      if ((kind == 0 && d != out.rank - 1) || (kind == 1 && d == out.rank - 1) || kind == 2 ||
          (kind == 4 && pick(0, 1)))
        dims[d] = 1;
    operands.push_back(std::move(matrix(dims, kind == 4 && pick(0, 1), pick(0, 2)).fill_uniform(generator())));
  }
  return operands;
}

// B as packed weights.
TensorArg packed_weights(const Case& c, const TensorArg& b, int64_t batches, std::vector<float>& packed) {
  const int64_t k_stride = b.strides[b.rank - 2], n_stride = b.strides[b.rank - 1];
  const gemm::Panels panels{c.bf16 ? gemm::pairs_of(c.k) : c.k, c.n, c.blocking.width};
  packed.resize(static_cast<size_t>(panels.floats() * batches));
  const auto floats = static_cast<int64_t>(packed.size());
  if (!c.bf16) {
    gemm::pack_weights(b.as<float>(), c.k, c.n, k_stride, n_stride, batches, c.k * c.n, c.blocking.width, packed);
    return {packed.data(), DType::f32, 1, {floats}, {1}};
  }
  for (int64_t i = 0; i < batches; ++i)
    gemm::pack_pairs(panels, c.k, b.as<float>() + i * c.k * c.n, k_stride, n_stride, 0, panels.count(),
                     packed.data() + i * panels.floats());
  return {packed.data(), DType::bf16, 1, {2 * floats}, {1}};
}

void run_case(const Case& c) {
  SCOPED_TRACE(c.text());
  const auto last = [](const std::vector<int64_t>& dims, size_t count) {
    return std::vector<int64_t>(dims.end() - static_cast<std::ptrdiff_t>(count), dims.end());
  };
  TestTensor a = matrix(with(last(c.batch, c.a_rank), c.m, c.k), c.transpose_a, pick(0, 3));
  a.fill_uniform(generator());
  const std::vector<int64_t> b_batch = c.batched_b ? c.batch : std::vector<int64_t>(c.batch.size(), 1);
  TestTensor b = matrix(with(last(b_batch, c.b_rank), c.k, c.n), c.transpose_b, 0);
  b.fill_uniform(generator());
  TestTensor out = matrix(with(c.batch, c.m, c.n), false, pick(0, 3));
  std::optional<Program> program;
  if (!c.program.empty()) program = *parse_program(c.program);
  std::vector<TestTensor> operands = random_operands(program ? program->num_inputs - 1 : 0, out.arg);

  int64_t batches = 1;
  if (c.batched_b)
    for (int64_t dim : c.batch) batches *= dim;
  TensorArg weights = b.arg;
  std::vector<float> packed;
  const int r = b.arg.rank;
  if (c.packed) weights = packed_weights(c, b.arg, batches, packed);
  const auto params = encode_params(c.packed ? gemm::GemmParams{c.k, c.n, true, batches, c.blocking, c.bf16}
                                             : gemm::GemmParams{.blocking = c.blocking, .bf16 = c.bf16});
  auto kernel = make_gemm({params, program ? &*program : nullptr});
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  std::vector<TensorArg> inputs{a.arg, weights};
  for (TestTensor& operand : operands) inputs.push_back(operand.arg);
  run_kernel(**kernel, inputs, {out.arg}, c.threads);

  const auto factors = [&](const TestTensor& matrices) {  // all that is in their memory
    std::vector<float> numbers(matrices.floats().begin(), matrices.floats().end());
    for (float& x : numbers) x = c.bf16 ? static_cast<float>(BFloat16(x)) : x;
    return numbers;
  };
  const std::vector<float> left = factors(a), right = factors(b);
  compare(
      out,
      [&](const int64_t* index) {
        int64_t ai[kMaxRank], bi[kMaxRank];
        std::copy(index + out.arg.rank - a.arg.rank, index + out.arg.rank, ai);
        std::copy(index + out.arg.rank - r, index + out.arg.rank, bi);
        ai[a.arg.rank - 1] = bi[r - 2] = 0;
        const double sum =
            sum_of_products(&left[static_cast<size_t>(&a.at(ai) - a.arg.as<float>())], a.arg.strides[a.arg.rank - 1],
                            &right[static_cast<size_t>(&b.at(bi) - b.arg.as<float>())], b.arg.strides[r - 2], c.k);
        return finish(program ? &*program : nullptr, sum, operands, index);
      },
      1e-6 * std::sqrt(static_cast<double>(c.k)) + 1e-6, 1e-6, c.text());
}

Case random_case() {
  Case c;
  for (int64_t i = pick(0, 2); i > 0; --i) c.batch.push_back(pick(1, 3));
  c.m = one_of<int64_t>({1, 2, 5, 13, 14, 15, 29, 50, 75});
  c.k = one_of<int64_t>({1, 2, 3, 4, 7, 17, 64, 130});
  c.n = one_of<int64_t>({1, 3, 15, 16, 17, 31, 48, 64, 65, 100, 129});
  c.packed = pick(0, 1);
  c.batched_b = pick(0, 1);
  c.a_rank = c.b_rank = c.batch.size();
  if (pick(0, 3) == 0) c.a_rank = static_cast<size_t>(pick(0, static_cast<int64_t>(c.batch.size())));
  if (!c.packed && pick(0, 3) == 0) c.b_rank = static_cast<size_t>(pick(0, static_cast<int64_t>(c.batch.size())));
  c.transpose_a = pick(0, 3) == 0;
  c.transpose_b = pick(0, 1);
  c.bf16 = pick(0, 1);
  c.blocking = {static_cast<int>(one_of<int64_t>({16, 32, 48, 64})), one_of<int64_t>({0, 0, gemm::kTileByTile, 5, 14}),
                one_of<int64_t>({0, 0, 1, 5, 64}), pick(0, 1) == 1};
  c.program = one_of<std::string>(
      {"", "in=2; r2=add r0 r1; out r2", "in=2; r2=add r0 r1; r3=relu r2; out r3",
       "in=3; r3=add r0 r1; r4=add r3 r2; r5=clip r4 -1 1.5; out r5", "in=2; r2=add r1 r0; r3=hard_swish r2; out r3",
       "in=3; r3=mul r0 r1; r4=add r3 r2; r5=leaky_relu r4 0.1; out r5", "in=2; r2=add r0 r1; r3=silu r2; out r3",
       "in=3; r3=sub r1 r0; r4=tanh r3; r5=mul r4 r2; r6=add r5 r3; out r6"});
  c.threads = static_cast<int>(pick(1, 3));
  return c;
}

TEST(Gemm, RandomShapes) {
  for (int i = 0; i < 1500 && !::testing::Test::HasFailure(); ++i) run_case(random_case());
}

TEST(Gemm, LargeEnoughForThreads) {
  for (int i = 0; i < 12 && !::testing::Test::HasFailure(); ++i) {
    Case c = random_case();
    c.batch.assign(static_cast<size_t>(i % 3), 2);
    c.a_rank = c.b_rank = c.batch.size();
    c.m = pick(100, 150);
    c.k = pick(100, 150);
    c.n = pick(120, 200);
    c.threads = 2;
    run_case(c);
  }
}

// Several blocks of K, of which some are neither the first nor the last, for several blocks of rows of several tiles.
TEST(Gemm, BlocksOfPairs) {
  for (int i = 0; i < 40 && !::testing::Test::HasFailure(); ++i) {
    Case c;
    c.m = one_of<int64_t>({17, 33, 130, 197});
    c.k = one_of<int64_t>({31, 33, 260, 333});
    c.n = one_of<int64_t>({16, 40, 129});
    c.bf16 = true;
    c.blocking = {static_cast<int>(one_of<int64_t>({16, 32, 64})), one_of<int64_t>({0, gemm::kTileByTile, 32, 64}),
                  one_of<int64_t>({0, 16, 32}), pick(0, 1) == 1};
    c.program = one_of<std::string>({"", "in=2; r2=add r0 r1; r3=gelu_erf r2; out r3"});
    c.threads = static_cast<int>(pick(1, 3));
    run_case(c);
  }
}

// Sizes of which floats are split where there are matrix registers: one block of K and several, whose sums are kept for
// some of the columns at a time, several blocks of rows, heights of all kinds, and ends of K, rows and columns.
TEST(Gemm, SplitFloats) {
  struct Sizes {
    int64_t m, k, n;
  };
  for (const auto& [m, k, n] : {Sizes{97, 900, 560}, Sizes{1100, 96, 64}, Sizes{97, 127, 257}, Sizes{130, 96, 144},
                                Sizes{128, 128, 128}, Sizes{197, 300, 130}})
    for (int i = 0; i < 2 && !::testing::Test::HasFailure(); ++i) {
      Case c = random_case();
      c.batch.clear();
      c.batched_b = c.bf16 = false;
      c.a_rank = c.b_rank = 0;
      c.m = m, c.k = k, c.n = n;
      EXPECT_TRUE(gemm::pays_to_split(c.m, c.n, c.k)) << c.text();
      run_case(c);
    }
}

// Sums are those of floats: infinite, or no numbers, where one of the factors is, and finite where a factor is too
// large for bf16. Factors that are no numbers have all kinds of bits.
TEST(Gemm, SplitFloatsThatAreNoNumbers) {
  const int64_t m = 100, k = 96, n = 130;
  ASSERT_TRUE(gemm::pays_to_split(m, n, k));
  const auto of_bits = [](uint32_t bits) { return std::bit_cast<float>(bits); };
  const float largest = std::numeric_limits<float>::max(), infinite = std::numeric_limits<float>::infinity();
  for (const float special : {infinite, -infinite, largest, -largest, of_bits(0x7f800001), of_bits(0xffffffff),
                              of_bits(0x7fffffff), of_bits(0xff80ffff)})
    for (const bool is_left : {true, false}) {
      TestTensor a = matrix({m, k}, false, 0), b = matrix({k, n}, false, 0), out = matrix({m, n}, false, 0);
      a.fill_uniform(generator());
      b.fill_uniform(generator());
      for (float& x : (is_left ? a : b).floats()) x *= 0.25f;
      const int64_t at[] = {is_left ? 33 : 41, is_left ? 95 : 66};
      (is_left ? a : b).at(at) = special;
      gemm::Blocking blocking;
      auto kernel = make_gemm({encode_params(gemm::GemmParams{.blocking = blocking}), nullptr});
      ASSERT_TRUE(kernel) << kernel.error().to_string();
      run_kernel(**kernel, {a.arg, b.arg}, {out.arg}, 1);
      out.for_each([&](const Dims& index, float got) {
        const int64_t row[] = {index[0], 0}, column[] = {0, index[1]};
        const auto want = static_cast<float>(sum_of_products(&a.at(row), 1, &b.at(column), n, k));
        const bool is_right = std::isnan(want)   ? std::isnan(got)
                              : std::isinf(want) ? got == want
                                                 : std::abs(got - want) <= 2e-5f + 2e-6f * std::abs(want);
        ASSERT_TRUE(is_right) << fmt::format("{} on the {}: at {} x {} got {}, want {}", special,
                                             is_left ? "left" : "right", index[0], index[1], got, want);
      });
    }
}

// Of rows that lie apart, of stacks of matrices, and of one matrix that is repeated.
TEST(PairBlocks, HaveEachPairOnceAndZerosBehindThem) {
  if (!has_matrix_registers()) GTEST_SKIP() << "they are written by instructions that go with matrix registers";
  for (const int64_t rows : {1, 17, 33, 197})
    for (const int64_t k : {1, 31, 33, 64}) {
      TestTensor a = TestTensor::strided({2, rows, k}, {rows == 33 ? 0 : rows * (k + 3), k + 3, 1});
      a.fill_uniform(generator());
      const gemm::PairBlocks blocks(2 * rows, k);
      ASSERT_LE(blocks.height, gemm::kMatrixRegisterRows);
      std::vector<float> written(static_cast<size_t>(blocks.floats()), 1.0f);
      gemm::write_blocks(blocks, a.arg, written.data(), pool_of(2));
      const auto* halves = reinterpret_cast<const uint16_t*>(written.data());
      for (int64_t row = 0; row < blocks.groups * blocks.height; ++row)
        for (int64_t e = 0; e < blocks.steps * 32; ++e) {
          const int64_t block = row / blocks.height * blocks.steps + e / 32;
          const uint16_t got = halves[(block * blocks.height + row % blocks.height) * 32 + e % 32];
          const bool exists = row < 2 * rows && e < k;
          const float x = exists ? a.at({row / rows, row % rows, e}) : 0;
          ASSERT_EQ(std::bit_cast<float>(static_cast<uint32_t>(got) << 16), static_cast<float>(BFloat16(x)))
              << row << ' ' << e;
        }
    }
}

TEST(Gemm, MatrixCandidatesAreValid) {
  for (int i = 0; i < 300; ++i) {
    const gemm::GemmShape shape{pick(1, 8), pick(1, 4000), pick(1, 4000), pick(1, 400'000)};
    for (int threads : {1, 2, 8}) {
      std::vector<gemm::Blocking> found = gemm::matrix_candidates(shape, threads);
      ASSERT_FALSE(found.empty());
      for (size_t k = 0; k < found.size(); ++k) {
        ASSERT_TRUE(gemm::valid(found[k]));
        ASSERT_EQ(found[k].width, gemm::kMatrixRegisterRows);
        ASSERT_EQ(std::find(found.begin(), found.begin() + static_cast<ptrdiff_t>(k), found[k]) - found.begin(), k);
      }
    }
  }
}

TEST(Gemm, CandidatesAreValid) {
  for (int i = 0; i < 300; ++i) {
    const gemm::GemmShape shape{pick(1, 8), pick(1, 4000), pick(1, 4000), pick(1, 4000)};
    for (int threads : {1, 2, 8}) {
      const auto found = gemm::candidates(shape, threads);
      ASSERT_FALSE(found.empty());
      ASSERT_LE(found.size(), 24u);
      for (const auto& blocking : found) ASSERT_TRUE(gemm::valid(blocking));
    }
  }
}

TEST(Gemm, RefusesHostileParameters) {
  const std::vector<int64_t> good = encode_params(gemm::GemmParams{8, 8, true});
  ASSERT_TRUE(make_gemm({good}));
  for (size_t i = 0; i < good.size(); ++i)
    for (int64_t value : {INT64_MIN, int64_t{-1}, int64_t{1} << 40, INT64_MAX}) {
      auto bad = good;
      bad[i] = value;
      EXPECT_FALSE(make_gemm({bad})) << i << " = " << value;
    }
  EXPECT_FALSE(make_gemm({std::span<const int64_t>(good).first(3)}));
}

TEST(Gemm, RefusesShapesThatDoNotFit) {
  const auto params = encode_params(gemm::GemmParams{8, 20, true});
  auto kernel = make_gemm({params});
  ASSERT_TRUE(kernel);
  TestTensor a({4, 8}), out({4, 20}), wrong({4, 9}), short_weights({10}), weights({gemm::packed_floats(8, 20, 1, 64)});
  auto refuses = [&](TestTensor& x, TestTensor& w, TestTensor& y) {
    const std::vector<TensorArg> inputs{x.arg, w.arg}, outputs{y.arg};
    return !(*kernel)->check(inputs, outputs);
  };
  EXPECT_FALSE(refuses(a, weights, out));
  weights.arg.dtype = DType::bf16;
  EXPECT_TRUE(refuses(a, weights, out));
  weights.arg.dtype = DType::f32;
  EXPECT_TRUE(refuses(wrong, weights, out));
  EXPECT_TRUE(refuses(a, short_weights, out));
  EXPECT_TRUE(refuses(a, weights, wrong));
}

}  // namespace
}  // namespace lathe::cpu
