// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/contraction/contraction.h"

#include "fixtures/ask_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/evaluation_check.h"

namespace lathe::cpu {
const Tactic& contraction_tactic();

namespace {

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::i8,  DType::u8,  DType::i16,
                            DType::u16, DType::i32, DType::i64, DType::u32, DType::u64};

// Numbers whose sums of products are exact in every type; of integers the largest, too, and negative ones.
Tensor random_numbers(DType type, const Dims& dims, std::mt19937& random) {
  Tensor tensor = *Tensor::allocate(type, dims);
  std::vector<double> values(static_cast<size_t>(tensor.volume()));
  const bool has_sign = class_of(type) != DTypeClass::unsigned_int;
  for (double& value : values) value = static_cast<double>(pick_between(random, has_sign ? -9 : 0, 9));
  if (is_integer(type) && !values.empty() && pick_between(random, 0, 1))
    values[0] = std::ldexp(1.0, static_cast<int>(std::min<size_t>(size_of(type), 4)) * 8 - 1) - 1;
  from_doubles(values, tensor);
  return tensor;
}

Problem problem_of(const Attributes& attributes, const std::vector<Tensor>& inputs, const Tensor& result) {
  const auto operand = [](const Tensor& tensor) {
    Operand operand;
    operand.dtype = tensor.dtype();
    operand.dims = to_shape(tensor.dims());
    operand.opt_dims = tensor.dims();
    return operand;
  };
  Problem problem;
  problem.attributes = &attributes;
  for (const Tensor& input : inputs) problem.inputs.push_back(operand(input));
  problem.outputs = {operand(result)};
  problem.program = {1, {}, {0}};
  return problem;
}

void compare(const Attributes& attributes, std::vector<Tensor> inputs, std::mt19937& random) {
  const Result<std::vector<Tensor>> expected = run_op(attributes, inputs, 1);
  ASSERT_TRUE(expected) << expected.error().message;
  const Problem problem = problem_of(attributes, inputs, (*expected)[0]);
  ASSERT_FALSE(refusal_of(contraction_tactic(), problem))
      << to_text(attributes) << *refusal_of(contraction_tactic(), problem);
  const Result<Emission> emission = emit(contraction_tactic(), problem, {});
  ASSERT_TRUE(emission);
  std::vector<TestTensor> strided;
  std::vector<TensorArg> args;
  strided.reserve(2);
  for (const Packed& packed : emission->packed) inputs.push_back(packed.content());
  for (const Tensor& tensor : inputs) args.push_back(strided.emplace_back(TestTensor::copy_of(tensor, random)).arg);
  TestTensor output = TestTensor::copy_of(*Tensor::allocate((*expected)[0].dtype(), (*expected)[0].dims()), random);
  run_kernel(*make_kernel("contraction", emission->params), args, {output.arg}, pick_between(random, 0, 1) ? 1 : 3);
  if (!::testing::Test::HasFatalFailure()) expect_same(output.checked_content(), (*expected)[0], to_text(attributes));
}

TEST(Contraction, OfMatricesIsTheEvaluation) {
  std::mt19937 random(71);
  for (int repeat = 0; repeat < 30; ++repeat)
    for (const DType type : kTypes) {
      if (type == DType::f32) continue;  // has a kernel of its own
      MatmulAttrs attrs;
      attrs.transpose_a = pick_between(random, 0, 1);
      attrs.transpose_b = pick_between(random, 0, 1);
      const bool large = pick_between(random, 0, 9) == 0;
      const auto extent = [&] { return pick_between(random, 0, 19) ? pick_between(random, 1, large ? 300 : 9) : 0; };
      const int64_t m = extent(), n = extent(), k = extent();
      Dims a = {m, k}, b = {k, n};
      if (attrs.transpose_a) std::swap(a[0], a[1]);
      if (attrs.transpose_b) std::swap(b[0], b[1]);
      for (Dims* dims : {&a, &b}) {
        const int64_t kind = pick_between(random, 0, 5);
        if (kind == 0) *dims = {k};
        if (kind == 1) dims->insert(dims->begin(), 2);
        if (kind == 2) dims->insert(dims->begin(), {3, 1});
      }
      const bool mixed = size_of(type) == 1 && pick_between(random, 0, 1);  // 8-bit integers of either sign
      const DType other = !mixed ? type : type == DType::i8 ? DType::u8 : DType::i8;
      compare(attrs, {random_numbers(type, a, random), random_numbers(other, b, random)}, random);
    }
}

TEST(Contraction, OfEinsumsIsTheEvaluation) {
  struct Case {
    const char* equation;
    std::vector<Dims> dims;
  };
  const Case cases[] = {{"ij,jk->ik", {{70, 300}, {300, 65}}},
                        {"bhid,bhjd->bhij", {{2, 3, 5, 4}, {2, 3, 7, 4}}},
                        {"bhwc,hkc->bhwk", {{2, 5, 4, 3}, {5, 6, 3}}},
                        {"...ij,...jk", {{2, 1, 3, 4}, {5, 4, 2}}},
                        {"i,j->ij", {{3}, {4}}},
                        {"i,i->", {{300}, {300}}},
                        {"ij,ij->j", {{6, 5}, {6, 5}}},
                        {"ij,k->i", {{3, 4}, {5}}},
                        {"ii->i", {{4, 4}}},
                        {"ii", {{4, 4}}},
                        {"ijk->kij", {{2, 3, 4}}},
                        {"bij->b", {{3, 4, 5}}},
                        {",->", {{}, {}}}};
  std::mt19937 random(72);
  for (const Case& each : cases)
    for (const DType type : kTypes) {
      EinsumAttrs attrs;
      attrs.equation = each.equation;
      std::vector<Tensor> inputs;
      for (const Dims& dims : each.dims) inputs.push_back(random_numbers(type, dims, random));
      compare(attrs, std::move(inputs), random);
    }
}

TEST(Contraction, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("contraction");
  for (const std::vector<int64_t>& params : std::vector<std::vector<int64_t>>{
           {}, {-1}, {17}, {1}, {1, 1, 1}, {1, 256, 1, 1}, {2, 1, 1, 1, 1, 2, 2}, {1, 1, 1, 3}, {1, -1, 1, 1}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  std::mt19937 random(73);
  const auto checks = [&](DType a, DType b, DType c, const Dims& dims) {
    const TestTensor x = TestTensor::copy_of(hard_tensor(a, {2, 3}, random), random),
                     y = TestTensor::copy_of(hard_tensor(b, dims, random), random),
                     z = TestTensor::copy_of(hard_tensor(c, {2, 4}, random), random);
    const auto kernel =
        make_kernel("contraction", contraction::ContractionParams{{{{1, 0, 1}}, {{0, 2, 2}}, {{2, 1, 0}}}});
    return static_cast<bool>(kernel->check(std::vector{x.arg, y.arg}, std::vector{z.arg}));
  };
  EXPECT_TRUE(checks(DType::f64, DType::f64, DType::f64, {3, 4}));
  EXPECT_TRUE(checks(DType::i32, DType::i32, DType::i32, {1, 4}));
  EXPECT_FALSE(checks(DType::f64, DType::f64, DType::f64, {3, 5}));
  EXPECT_FALSE(checks(DType::f64, DType::f64, DType::f64, {2, 4}));
  EXPECT_FALSE(checks(DType::f64, DType::f64, DType::f64, {3}));
  EXPECT_FALSE(checks(DType::f64, DType::f64, DType::f64, {3, 4, 1}));
  EXPECT_FALSE(checks(DType::f64, DType::f64, DType::f32, {3, 4}));
  EXPECT_FALSE(checks(DType::f16, DType::f16, DType::f16, {3, 4}));
  EXPECT_TRUE(checks(DType::i8, DType::u8, DType::i32, {3, 4}));
  EXPECT_FALSE(checks(DType::i8, DType::u8, DType::i8, {3, 4}));
  EXPECT_FALSE(checks(DType::i16, DType::i16, DType::i32, {3, 4}));
}

}  // namespace
}  // namespace lathe::cpu
