// SPDX-License-Identifier: Apache-2.0
// Loops and branches through the builder and the runtime, compared with the plain evaluation.
#include "lowering/engine_fixture.h"

namespace lathe {
namespace {

// Products and a normalisation in each round: kernels with weights of their own, and values from outside.
constexpr std::string_view kRounds = R"(graph "rounds" {
  symbol b in [1, 4]
  symbol n in [0, 9]
  input %x: f32[b, 16]
  input %seq: f32[b, n, 16]
  input %shift: f32[b, 1]
  %w = constant{value=f32[16, 16]{~1}}()
  %scaled = elementwise{op=mul}(%x, %shift)
  %last, %all = loop{carried=1, scan_axes=[1], scan_reversed=[0], stack_axes=[1], stack_reversed=[1]}(_, _, %x, %seq, %scaled, %w) body {
    input %round: i64[]
    input %holds: bool[]
    input %h: f32[b, 16]
    input %row: f32[b, 16]
    input %s: f32[b, 16]
    input %m: f32[16, 16]
    %p = matmul(%h, %m)
    %q = elementwise{op=add}(%p, %row)
    %r = elementwise{op=add}(%q, %s)
    %t = activation{op=tanh}(%r)
    %u = activation{op=relu}(%t)
    output %holds
    output %t
    output %u
  }
  %y = unary{op=exp}(%last)
  output %y
  output %all
})";

// Kernels are chosen for bodies as for the network, and what only the outside has is computed once.
TEST(ControlFlowPlans, BodiesFollowTheirBlock) {
  const auto engine = build_engine(std::string(kRounds), native_options());
  ASSERT_TRUE(engine);
  std::string kinds;
  size_t inside = 0;
  for (const plan::Step& step : engine->plan().steps) {
    kinds += fmt::format("{} ", step.kind());
    if (const auto* block = std::get_if<plan::Block>(&step.work)) inside = block->bodies[0].steps;
  }
  EXPECT_EQ(kinds, "host kernel loop host kernel host kernel host kernel ");
  EXPECT_EQ(inside, 2u);
}

TEST(ControlFlowPlans, RoundsOfKernels) {
  for (const int64_t rounds : {0, 1, 5}) check_build(std::string(kRounds), {{3, 16}, {3, rounds, 16}, {3, 1}});
}

TEST(ControlFlowPlans, CarriedValuesMayGrowAndChangePlaces) {
  check_build(R"(graph "growing" {
  symbol k in [1, 4]
  input %x: f32[k, 8]
  input %u: f32[2]
  input %v: f32[2]
  %n = constant{value=i64[]{3}}()
  %last, %a, %b, %sizes = loop{carried=3, stack_axes=[0], stack_reversed=[0]}(%n, _, %x, %u, %v, %x) body {
    input %round: i64[]
    input %holds: bool[]
    input %rows: f32[k, 8]
    input %a: f32[2]
    input %b: f32[2]
    input %more: f32[k, 8]
    %all = concat{axis=0}(%rows, %more)
    %s = activation{op=sigmoid}(%all)
    %shape = shape(%s)
    output %holds
    output %s
    output %b
    output %a
    output %shape
  }
  output %last
  output %a
  output %b
  output %sizes
})",
              {{2, 8}, {2}, {2}});
}

// A condition that is computed ends the loop; how often it went round is known only then.
TEST(ControlFlowPlans, ConditionsEndLoops) {
  check_build(R"(graph "until" {
  symbol k in [1, 40]
  input %x: f32[k]
  %first = constant{value=bool[]{1}}()
  %last, %each = loop{carried=1, stack_axes=[1], stack_reversed=[1]}(_, %first, %x) body {
    input %round: i64[]
    input %holds: bool[]
    input %v: f32[k]
    %two = constant{value=f32[]{2}}()
    %w = elementwise{op=mul}(%v, %two)
    %square = elementwise{op=mul}(%w, %w)
    %axes = constant{value=i64[1]{0}}()
    %sum = reduce{op=sum, keepdims=false}(%square, %axes)
    %most = constant{value=f32[]{5000}}()
    %c = elementwise{op=less}(%sum, %most)
    output %c
    output %w
    output %square
  }
  output %last
  output %each
})",
              {{30}});
}

TEST(ControlFlowPlans, BranchesRunOneBody) {
  const std::string text = R"(graph "branches" {
  symbol n in [1, 9]
  input %x: f32[n, 16]
  %zero = constant{value=f32[]{@}}()
  %axes = constant{value=i64[2]{0, 1}}()
  %sum = reduce{op=sum, keepdims=false}(%x, %axes)
  %c = elementwise{op=greater}(%sum, %zero)
  %t = transpose{perm=[1, 0]}(%x)
  %y, %z = branch(%c, %x, %t) body {
    input %v: f32[n, 16]
    input %t: f32[16, n]
    %p = matmul(%v, %t)
    %r = activation{op=relu}(%p)
    %b = constant{value=i64[1]{0}}()
    %e = constant{value=i64[1]{3}}()
    %a = constant{value=i64[1]{1}}()
    %s = slice(%v, %b, %e, %a)
    output %r
    output %s
  } body {
    input %v: f32[n, 16]
    input %t: f32[16, n]
    %p = matmul(%v, %t)
    output %p
    output %v
  }
  %f = unary{op=exp}(%z)
  output %y
  output %f
})";
  for (const char* limit : {"-1000", "1000"}) {
    std::string limited = text;
    limited.replace(limited.find('@'), 1, limit);
    check_build(limited, {{4, 16}});
  }
}

// What a body relies on counts when it is run: here that n and m are equal, or that one of them is 1.
TEST(ControlFlowPlans, ConstraintsOfABodyCountWhereItRuns) {
  const auto engine = build_engine(R"(graph "sums" {
  symbol n in [1, 9]
  symbol m in [1, 9]
  input %c: bool[]
  input %x: f32[n]
  input %y: f32[m]
  %z = branch(%c, %x, %y) body {
    input %x: f32[n]
    input %y: f32[m]
    %to = shape(%x)
    %r = reshape(%y, %to)
    %s = elementwise(%x, %r)
    output %s
  } body {
    input %x: f32[n]
    input %y: f32[m]
    output %x
  }
  output %z
})",
                                   native_options());
  ASSERT_TRUE(engine);
  const auto run = [&](bool holds, int64_t n, int64_t m) {
    Result<std::unique_ptr<Context>> context = Context::create(engine);
    Tensor condition = Tensor::of<bool>({}, {holds});
    Tensor x = random_tensor(DType::f32, {n}, 1), y = random_tensor(DType::f32, {m}, 2);
    std::vector<float> z(16);
    const Tensor* inputs[] = {&condition, &x, &y};
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE((*context)->set_input_dims(i, inputs[i]->dims()));
      EXPECT_TRUE((*context)->set_address(i, const_cast<std::byte*>(inputs[i]->raw().data())));
    }
    EXPECT_TRUE((*context)->set_address(3, z.data()));
    const Result<> ran = (*context)->run();
    return ran ? std::string("ran") : ran.error().message;
  };
  EXPECT_EQ(run(true, 4, 4), "ran");
  EXPECT_EQ(run(false, 4, 3), "ran");
  EXPECT_NE(run(true, 4, 3).find("reshape 'r' needs"), std::string::npos) << run(true, 4, 3);
}

TEST(ControlFlowPlans, LoopsInBranchesInLoops) {
  check_build(R"(graph "nested" {
  symbol n in [1, 9]
  input %x: f32[n, 16]
  %count = constant{value=i64[]{4}}()
  %w = constant{value=f32[16, 16]{~3}}()
  %one = constant{value=i64[]{1}}()
  %y = loop{carried=1}(%count, _, %x, %one, %x, %w) body {
    input %i: i64[]
    input %holds: bool[]
    input %v: f32[n, 16]
    input %one: i64[]
    input %x: f32[n, 16]
    input %w: f32[16, 16]
    %c = elementwise{op=equal}(%i, %one)
    %r = branch(%c, %v, %x, %w) body {
      input %v: f32[n, 16]
      input %x: f32[n, 16]
      input %w: f32[16, 16]
      %two = constant{value=i64[]{2}}()
      %u = loop{carried=1}(%two, _, %v, %x, %w) body {
        input %k: i64[]
        input %h: bool[]
        input %q: f32[n, 16]
        input %x: f32[n, 16]
        input %w: f32[16, 16]
        %m = matmul(%q, %w)
        %t = activation{op=tanh}(%m)
        %s = elementwise{op=add}(%t, %x)
        output %h
        output %s
      }
      output %u
    } body {
      input %v: f32[n, 16]
      input %x: f32[n, 16]
      input %w: f32[16, 16]
      %neg = unary{op=neg}(%v)
      output %neg
    }
    output %holds
    output %r
  }
  output %y
})",
              {{5, 16}});
}

}  // namespace
}  // namespace lathe
