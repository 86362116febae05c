// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/expert_gemm/expert_gemm.h"

#include "kernels/cpu/evaluation_check.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/pairs.h"
#include "kernels/cpu/reference.h"
#include "ops/rules.h"

namespace lathe::cpu {
namespace {

using namespace testing;
using gemm::ExpertGemmParams;

TensorArg plain(Tensor& tensor) {
  TensorArg arg;
  arg.data = tensor.mutable_data(), arg.dtype = tensor.dtype(), arg.rank = tensor.rank();
  const Dims strides = row_major_strides(tensor.dims());
  std::ranges::copy(tensor.dims(), arg.dims);
  std::ranges::copy(strides, arg.strides);
  return arg;
}

// As many rows as an expert may have, and none; some are of no expert. Rows are shared or each row's own, of any
// strides.
void run_random() {
  const int64_t experts = pick(1, 9), k = one_of<int64_t>({1, 3, 16, 47, 130}),
                n = one_of<int64_t>({1, 15, 16, 63, 130});
  const int64_t tokens = one_of<int64_t>({1, 2, 7, 60}), choices = pick(1, 3);
  const bool packed = pick(0, 1), shared = pick(0, 1), bf16 = pick(0, 1);
  ExpertGemmParams params{.packed = packed, .bf16 = bf16};
  params.blocking = {.width = static_cast<int>(one_of<int64_t>({16, 32, 48, 64})),
                     .k_block = one_of<int64_t>({0, 0, 5, 32}),
                     .split_columns = true};
  if (packed) params.experts = experts, params.k = k, params.n = n;
  const Program program = program_of(
      one_of<std::string>({"in=1; out r0", "in=2; r2=add r0 r1; out r2", "in=2; r2=silu r0; r3=mul r2 r1; out r3"}));
  SCOPED_TRACE(fmt::format(
      "{} experts, k {}, n {}, {} x {} rows, packed {}, shared {}, bf16 {}, width {}, k block {}, {}", experts, k, n,
      tokens, choices, packed, shared, bf16, params.blocking.width, params.blocking.k_block, to_text(program)));
  Tensor x = random_tensor(DType::f32, {tokens, shared ? 1 : choices, k}, generator());
  Tensor weights = random_tensor(DType::f32, {experts, k, n}, generator());
  for (Tensor* factor : {&x, &weights})
    for (int64_t i = 0; bf16 && i < factor->volume(); ++i)
      factor->mutable_as<float>()[i] = static_cast<float>(BFloat16(factor->as<float>()[i]));
  Tensor ids =
      random_integers(one_of({DType::i64, DType::i32, DType::i8}), {tokens, choices}, -2, experts + 1, generator());
  const Tensor sums = (*run_op(ExpertMatmulAttrs{}, std::vector{x, weights, ids}, 1))[0];
  const TestTensor x_arg = TestTensor::copy_of(x, generator()), ids_arg = TestTensor::copy_of(ids, generator());
  TestTensor operand({1, choices, n}), out({tokens, choices, n});
  std::ranges::generate(operand.floats(), [] { return static_cast<float>(pick(-9, 9)) / 8; });
  Tensor panels = *Tensor::allocate(DType::f32, {gemm::packed_floats(k, n, experts, params.blocking.width)});
  TensorArg b = plain(weights);
  Tensor pairs;
  if (packed && !bf16) {
    gemm::pack_weights(weights.as<float>(), k, n, n, 1, experts, k * n, params.blocking.width,
                       {panels.mutable_as<float>(), static_cast<size_t>(panels.volume())});
    b = plain(panels);
  } else if (packed) {
    const gemm::Panels one{gemm::pairs_of(k), n, params.blocking.width};
    pairs = *Tensor::allocate(DType::bf16, {2 * one.floats() * experts});
    for (int64_t e = 0; e < experts; ++e)
      gemm::pack_pairs(one, k, weights.as<float>() + e * k * n, n, 1, 0, one.count(),
                       reinterpret_cast<float*>(pairs.mutable_data()) + e * one.floats());
    b = plain(pairs);
  }
  std::vector<TensorArg> inputs = {x_arg.arg, b, ids_arg.arg};
  std::vector<TestTensor> operands;
  if (program.num_inputs > 1) inputs.push_back(operands.emplace_back(std::move(operand)).arg);
  const auto kernel = make_kernel("expert_gemm", params, &program);
  run_kernel(*kernel, inputs, {out.arg}, static_cast<int>(pick(1, 3)));
  compare(
      out,
      [&](const int64_t* index) {
        const double sum = sums.at_double((index[0] * choices + index[1]) * n + index[2]);
        return finish(&program, sum, operands, index);
      },
      1e-5, 1e-5, "expert_gemm");
}

TEST(ExpertGemm, RandomShapes) {
  for (int i = 0; i < 300 && !::testing::Test::HasFailure(); ++i) run_random();
}

struct Small {
  Tensor x = Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor weights = Tensor::of<float>({2, 2, 1}, {1, 1, 1, -1});
  Tensor ids = Tensor::of<int64_t>({3}, {-1, 0, 1});
  Tensor y = Tensor::of<float>({3, 1}, {0, 0, 0});

  Result<> run(bool strict) {
    const auto kernel = make_kernel("expert_gemm", ExpertGemmParams{.strict = strict});
    const std::vector<TensorArg> inputs = {plain(x), plain(weights), plain(ids)}, outputs = {plain(y)};
    LATHE_TRY(kernel->check(inputs, outputs));
    TestWorkspace workspace(kernel->workspace_bytes(inputs, outputs, 1));
    return kernel->try_run({inputs, outputs, workspace.get(), pool_of(1)});
  }
};

TEST(ExpertGemm, IndicesThatAreStrictCountFromTheEndAndLieInside) {
  Small small;
  ASSERT_TRUE(small.run(true));
  EXPECT_TRUE(identical(small.y, Tensor::of<float>({3, 1}, {-1, 7, -1})));
  ASSERT_TRUE(small.run(false));
  EXPECT_TRUE(identical(small.y, Tensor::of<float>({3, 1}, {0, 7, -1})));
  small.ids = Tensor::of<int64_t>({3}, {0, 2, 0});
  const Result<> outside = small.run(true);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().code, ErrorCode::execution_failed);
  EXPECT_EQ(outside.error().message, "expert_matmul: index 2 is outside [-2, 2)");
}

TEST(ExpertGemm, RefusesWhatDoesNotFit) {
  const KernelFactory factory = find_kernel("expert_gemm");
  const auto refused = [&](const ExpertGemmParams& params) { return !factory(Record{encode_params(params), nullptr}); };
  EXPECT_TRUE(refused({.experts = 2}));  // of a plain B
  EXPECT_TRUE(refused({.experts = 2, .k = 2, .n = 0, .packed = true}));
  EXPECT_TRUE(refused({.experts = 1 << 30, .k = 1 << 20, .n = 1 << 20, .packed = true}));
  EXPECT_TRUE(refused({.experts = -1, .k = 2, .n = 2, .packed = true}));
  EXPECT_TRUE(refused({.blocking = {.width = 7}}));
  EXPECT_FALSE(factory(Record{std::vector<int64_t>{1, 2}, nullptr}));
  const auto code_of = [](const auto& change) {
    Small small;
    change(small);
    const Result<> run = small.run(false);
    return run ? std::optional<ErrorCode>() : run.error().code;
  };
  EXPECT_EQ(code_of([](Small&) {}), std::nullopt);
  EXPECT_EQ(code_of([](Small& s) { s.x = Tensor::of<float>({2, 2}, {1, 2, 3, 4}); }), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([](Small& s) { s.ids = Tensor::of<int64_t>({2}, {0, 0}); }), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([](Small& s) { s.weights = Tensor::of<float>({2, 1, 1}, {1, 1}); }), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([](Small& s) { s.ids = Tensor::of<float>({3}, {0, 0, 0}); }), ErrorCode::type_mismatch);
  EXPECT_EQ(code_of([](Small& s) {
              s.weights = Tensor::of<int32_t>({2, 2, 1}, {1, 1, 1, 1});
            }),
            ErrorCode::type_mismatch);
}

}  // namespace
}  // namespace lathe::cpu
