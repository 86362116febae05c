// SPDX-License-Identifier: Apache-2.0
#include "tuning/problem.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

Operand matrix(const Shape& strides) {
  Operand operand;
  operand.dims = {4, 8};
  operand.strides = strides;
  return operand;
}

// Of an op that reads input 0 after a program of that and the others.
Problem computed(const Attributes& attributes, const std::vector<Operand>& others) {
  Problem problem;
  problem.attributes = &attributes;
  problem.inputs = {matrix({8, 1}), matrix({8, 1})};
  problem.inputs[0].program = *parse_program("in=2; r2=add r0 r1; out r2");
  problem.inputs[0].operands = others;
  problem.outputs = {matrix({8, 1})};
  return problem;
}

TEST(UnsupportedFeature, ProgramsBeforeAnInput) {
  const Features before_input_0{.prologues = 1};
  const MatmulAttrs product;
  const SoftmaxAttrs rows;
  const Operand whole = matrix({8, 1}), row = matrix({0, 1});
  EXPECT_TRUE(unsupported_feature(computed(product, {row}), {}));
  EXPECT_FALSE(unsupported_feature(computed(product, {row}), before_input_0));
  EXPECT_TRUE(unsupported_feature(computed(product, {row, whole}), before_input_0)) << "it copies tiles of one tensor";
  EXPECT_FALSE(unsupported_feature(computed(rows, {row, whole}), before_input_0));
  EXPECT_FALSE(unsupported_feature(computed(rows, std::vector(7, row)), before_input_0));
  EXPECT_TRUE(unsupported_feature(computed(rows, std::vector(8, row)), before_input_0));
}

TEST(UnsupportedFeature, FurtherResultsOfAProgram) {
  const SoftmaxAttrs rows;
  Problem problem = computed(rows, {});
  problem.inputs[0].program = {};
  problem.outputs.push_back(problem.outputs[0]);
  EXPECT_TRUE(unsupported_feature(problem, {.further_program_results = true})) << "it is the op that has them";
  EXPECT_FALSE(unsupported_feature(problem, {.further_results = true}));
  problem.program = {1, {}, {0, 0}};
  EXPECT_FALSE(unsupported_feature(problem, {.further_program_results = true}));
  EXPECT_TRUE(unsupported_feature(problem, {.further_results = true}));
  problem.attributes = nullptr;  // an expression
  EXPECT_FALSE(unsupported_feature(problem, {.further_results = true}));
}

// Timings of one are not those of the other.
TEST(ProblemText, SaysThatWeightsAreSparse) {
  const MatmulAttrs product;
  const Problem dense = computed(product, {});
  Problem sparse = dense;
  sparse.sparse = true;
  EXPECT_NE(to_text(sparse), to_text(dense));
}

}  // namespace
}  // namespace lathe
