// SPDX-License-Identifier: Apache-2.0
// Attention whose tiles the copy engine brings, on the emulator: every tile, and all that may surround it.
#include <gtest/gtest.h>

#include <random>

#include "base/encoding.h"
#include "fixtures/ask_tactic.h"
#include "fixtures/test_tensor.h"
#include "kernels/cuda/attention_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {

const Tactic& attention_pipeline_tactic();

namespace {

struct Sizes {
  int64_t batch = 1, heads = 2, kv_heads = 2, queries = 150, keys = 210, size = 64, value_size = 64;
};

class AttentionPipeline : public testing::Test {
 protected:
  // Few multiprocessors: blocks take several tiles of queries, and go round the ring.
  static Target small_device() {
    Target target = test_target();
    target.cores = 2;
    return target;
  }
  static Problem problem(const AttentionAttrs& attrs, DType dtype, const Sizes& s,
                         const std::vector<Operand>& mask = {}) {
    return attention_problem(attrs, dtype, s, mask);
  }
  static CheckOptions tolerance_of(const Problem& problem, CheckOptions options) {
    // Weights are rounded to the type before they meet the values.
    options.tolerance = problem.inputs[0].dtype == DType::bf16 ? 3e-2 : 4e-3;
    return options;
  }
  static void check_all(Problem problem, const CheckOptions& options = {}) {
    problem.target = small_device();
    const Result<> checked =
        check_tactic(test_backend(), attention_pipeline_tactic(), problem, tolerance_of(problem, options));
    EXPECT_TRUE(checked) << to_text(problem) << "\n" << checked.error().message;
  }
  static void check_one(Problem problem, const CheckOptions& options = {}) {
    problem.target = small_device();
    const Result<> checked =
        check_first(test_backend(), attention_pipeline_tactic(), problem, tolerance_of(problem, options));
    EXPECT_TRUE(checked) << to_text(problem) << "\n" << checked.error().message;
  }
};

TEST_F(AttentionPipeline, EveryTile) {
  const AttentionAttrs attrs = attention_attributes(0.125);
  check_all(problem(attrs, DType::f16, {1, 2, 2, 200, 400, 64, 64}));
}

TEST_F(AttentionPipeline, EveryTileOfCausalAttention) {
  const AttentionAttrs attrs = attention_attributes(0.125, true);
  check_all(problem(attrs, DType::f16, {1, 2, 1, 200, 200, 64, 64}));
}

// Weights are relative to a logit that was the largest once, and tiles come from the last key to the first: logits rise
// by so much that it is looked for again, in some rows and not in others, or all of them are far below those of keys
// that a mask hides.
TEST_F(AttentionPipeline, LogitsThatRiseAndKeysThatAreHidden) {
  const Sizes sizes{1, 2, 1, 70, 300};
  const auto check_logits = [&](float first, float slope, bool hides_last, DType factors = DType::f32) {
    AttentionAttrs attrs = attention_attributes(1.0);
    attrs.factors = factors;
    std::vector<Operand> mask;
    if (hides_last) mask.push_back(operand(DType::boolean, {1, 1, 1, sizes.keys}));
    const Problem made = problem(attrs, DType::f16, sizes, mask);
    CheckOptions options;
    std::mt19937 random(5);
    for (size_t i = 0; i < 3; ++i) {
      // A weight in the middle of two 8-bit floats may become either: of a row's largest that moves a result by 0.005
      // where values are as large as 1.
      const double most = i == 2 ? 0.5 : 0.1;
      options.inputs.push_back(
          random_tensor(DType::f16, made.inputs[i].opt_dims, random, {Content::between, -most, most}));
      if (i == 2) break;
      Tensor& tensor = options.inputs.back();
      for (int64_t row = 0; row < tensor.volume() / sizes.size; ++row)  // the first element is the logit's
        tensor.mutable_as<_Float16>()[row * sizes.size] =
            _Float16(i == 0 ? static_cast<float>(row % 5) : first + slope * static_cast<float>(row % sizes.keys));
    }
    if (hides_last) {
      options.inputs.push_back(*Tensor::allocate(DType::boolean, {1, 1, 1, sizes.keys}));
      for (int64_t key = 0; key < sizes.keys; ++key) options.inputs[3].mutable_as<bool>()[key] = key < 20;
    }
    check_all(made, options);
  };
  check_logits(40.0f, -0.1f, false);
  check_logits(-60.0f, 0.1f, true);
  check_logits(40.0f, -0.1f, false, DType::f8e4m3fn);
  check_logits(-60.0f, 0.1f, true, DType::f8e4m3fn);
}

TEST_F(AttentionPipeline, WeightsOfEightBitFloatsOfOtherKeys) {
  AttentionAttrs attrs = attention_attributes(0.25, true);
  attrs.factors = DType::f8e4m3fn;
  check_all(problem(attrs, DType::f16, {1, 2, 1, 70, 210, 64, 64}));
  check_one(problem(attrs, DType::bf16, {1, 2, 1, 70, 100, 64, 64}));
}

TEST_F(AttentionPipeline, HeadsOfEverySize) {
  const AttentionAttrs attrs = attention_attributes(0.1);
  for (const auto& [size, value_size] :
       {std::pair{32, 32}, {40, 40}, {80, 80}, {96, 80}, {128, 128}, {256, 256}, {8, 192}})
    check_one(problem(attrs, DType::bf16, {1, 2, 1, 70, 100, size, value_size}));
}

TEST_F(AttentionPipeline, LargeHeadsInEveryTile) {
  const AttentionAttrs attrs = attention_attributes(0.1, true);
  check_all(problem(attrs, DType::f16, {1, 1, 1, 140, 270, 128, 128}));
}

// Values are turned by warps of their own; heads of sizes between tiles', shared heads, masks, sinks, few cores. Small
// integers and multiples of the logarithm of 2 make weights powers of two, which no rounding changes.
TEST_F(AttentionPipeline, EightBitFloats) {
  constexpr double kLn2 = 0.6931471805599453;
  const auto attributes = [](double scale, bool causal = false) {
    AttentionAttrs attrs = attention_attributes(scale, causal);
    attrs.factors = DType::f8e4m3fn;
    return attrs;
  };
  const auto of = [](const AttentionAttrs& attrs, const Sizes& sizes, const std::vector<Operand>& mask = {}) {
    Problem made = problem(attrs, DType::f8e4m3fn, sizes, mask);
    made.outputs[0].dtype = DType::f16;
    return made;
  };
  const auto contents_of = [](const Problem& problem) {
    std::mt19937 random(3);
    CheckOptions options;
    for (size_t i = 0; i < 2; ++i) {
      const Tensor integers = random_tensor(DType::i8, problem.inputs[i].opt_dims, random, {Content::between, -1, 1});
      Tensor floats = *Tensor::allocate(DType::f8e4m3fn, integers.dims());
      for (int64_t at = 0; at < integers.volume(); ++at)
        store_code(floats.dtype(), floats.mutable_data(), at, encode(floats.dtype(), integers.at_double(at)));
      options.inputs.push_back(floats);
    }
    return options;
  };
  const AttentionAttrs plain = attributes(kLn2), causal = attributes(kLn2, true);
  const Problem many = of(plain, {1, 2, 2, 140, 260, 64, 64}), wide = of(causal, {1, 2, 1, 100, 230, 128, 128});
  check_all(many, contents_of(many));
  check_one(wide, contents_of(wide));
  for (const auto& [size, value_size] : {std::pair{32, 16}, {48, 80}, {128, 64}}) {
    const Problem other = of(plain, {2, 2, 1, 70, 100, size, value_size});
    check_one(other, contents_of(other));
  }
  const Problem masked = of(causal, {2, 2, 2, 70, 100, 64, 64}, {operand(DType::boolean, {2, 1, 70, 100})});
  check_one(masked, contents_of(masked));
  Problem sinks = with_sinks(causal, DType::f8e4m3fn, Sizes{1, 4, 2, 150, 10}, {}, DType::f32);
  sinks.outputs[0].dtype = DType::f32;
  check_one(sinks, contents_of(sinks));
}

TEST_F(AttentionPipeline, CausalWithFewerAndMoreKeysThanQueries) {
  const AttentionAttrs attrs = attention_attributes(0.25, true);
  for (const int64_t keys : {60, 330}) check_one(problem(attrs, DType::f16, {1, 2, 1, 150, keys, 64, 64}));
}

TEST_F(AttentionPipeline, QueriesThatSeeNoKeyAreZeros) {
  AttentionAttrs attrs = attention_attributes(0.25, true);
  attrs.zeros_for_nan = true;
  check_one(problem(attrs, DType::f16, {1, 2, 1, 150, 10, 64, 64}));
}

TEST_F(AttentionPipeline, EveryTileOfWindows) {
  const AttentionAttrs attrs = window_attributes(0.125, true, 90);
  check_all(problem(attrs, DType::f16, {1, 2, 1, 200, 420, 64, 64}));
}

TEST_F(AttentionPipeline, WindowsOfFewerAndMoreKeysThanQueries) {
  for (const bool causal : {false, true})
    for (const int64_t keys : {60, 330}) {
      const AttentionAttrs attrs = window_attributes(0.25, causal, 33);
      check_one(problem(attrs, DType::bf16, {1, 2, 1, 150, keys, 64, 64}));
    }
}

// From key 400 - 70 - 20 + 1 on; tiles of 160 keys begin at 160, and others behind.
TEST_F(AttentionPipeline, TilesOutsideOfWindowsAreNotLoaded) {
  const AttentionAttrs attrs = window_attributes(0.25, true, 20);
  CheckOptions options;
  options.inputs = {Tensor(), numbers_from(160, DType::f16, {1, 2, 400, 64}),
                    numbers_from(160, DType::f16, {1, 2, 400, 64})};
  check_all(problem(attrs, DType::f16, {1, 2, 2, 70, 400, 64, 64}), options);
}

// Padding hides the first 70 keys, which are all that some queries see by their places.
TEST_F(AttentionPipeline, QueriesThatSeeNoKeyHaveTheMeanOfAllValues) {
  AttentionAttrs attrs = window_attributes(0.25, true, 40);
  attrs.mean_for_none = true;
  CheckOptions options;
  Tensor mask = *Tensor::allocate(DType::boolean, {2, 1, 1, 150});
  for (int64_t i = 0; i < mask.volume(); ++i) mask.mutable_as<bool>()[i] = i % 150 >= 70 * (i / 150);
  options.inputs = {Tensor(), Tensor(), Tensor(), mask};
  check_one(problem(attrs, DType::f16, {2, 4, 2, 150, 150, 64, 40}, {operand(DType::boolean, {2, 1, 1, 150})}),
            options);
  check_one(problem(attrs, DType::f16, {1, 2, 1, 150, 10, 64, 64}));
}

// A mask of keys alone leaves logits linear.
TEST_F(AttentionPipeline, PaddingInEveryTile) {
  const AttentionAttrs attrs = attention_attributes(0.125, true);
  CheckOptions options;
  Tensor mask = *Tensor::allocate(DType::boolean, {2, 1, 1, 210});
  for (int64_t i = 0; i < mask.volume(); ++i)
    mask.mutable_as<bool>()[i] = i % 210 == 0 || i % 210 > 150 * (i / 210) || i % 7 == 0;
  options.inputs = {Tensor(), Tensor(), Tensor(), mask};
  check_all(problem(attrs, DType::f16, {2, 1, 1, 70, 210, 64, 64}, {operand(DType::boolean, {2, 1, 1, 210})}), options);
}

// Two scores of a thread have one distance; at the edges of a head some are there that nobody sees.
TEST_F(AttentionPipeline, DistancesInEveryTile) {
  const AttentionAttrs attrs = attention_attributes(0.125, true);
  check_all(with_distances(attrs, DType::f16, Sizes{1, 2, 1, 150, 300}, {}, DType::f16, 2));
}

TEST_F(AttentionPipeline, DistancesBesideOthers) {
  const AttentionAttrs plain = attention_attributes(0.25), window = window_attributes(0.25, false, 40);
  check_one(with_distances(plain, DType::bf16, Sizes{2, 4, 2, 150, 70}, {}, DType::f32, 1));
  check_one(with_distances(window, DType::f16, Sizes{1, 2, 2, 70, 210}, {operand(DType::f32, {1, 2, 1, 210})},
                           DType::f32, 2));
  check_one(with_distances(attention_attributes(0.5, false, 3.0), DType::f16, Sizes{1, 2, 2, 70, 100},
                           {operand(DType::f16, {1, 1, 70, 100})}, DType::f16, 2));
  AttentionAttrs hidden = attention_attributes(0.25, true);
  hidden.mean_for_none = true;
  CheckOptions options;
  Tensor mask = *Tensor::allocate(DType::boolean, {2, 1, 1, 150});
  for (int64_t i = 0; i < mask.volume(); ++i) mask.mutable_as<bool>()[i] = i % 150 >= 70 * (i / 150);
  options.inputs = {Tensor(), Tensor(), Tensor(), mask};
  check_one(with_distances(hidden, DType::f16, Sizes{2, 4, 2, 150, 150}, {operand(DType::boolean, {2, 1, 1, 150})},
                           DType::f32, 4),
            options);
}

// Numbers of keys are read for all queries of a thread.
TEST_F(AttentionPipeline, NumbersOfKeysInEveryTile) {
  AttentionAttrs attrs = attention_attributes(0.125, true);
  attrs.mean_for_none = true;
  CheckOptions options;
  Tensor mask = *Tensor::allocate(DType::f32, {2, 1, 1, 210});
  for (int64_t i = 0; i < mask.volume(); ++i)
    mask.mutable_as<float>()[i] = i < 300 ? -INFINITY : i % 7 == 0 ? -3.4028235e38f : static_cast<float>(i % 5);
  options.inputs = {Tensor(), Tensor(), Tensor(), mask};
  check_all(problem(attrs, DType::f16, {2, 1, 1, 70, 210, 64, 64}, {operand(DType::f32, {2, 1, 1, 210})}), options);
}

TEST_F(AttentionPipeline, Sinks) {
  const AttentionAttrs plain = attention_attributes(0.25), causal = attention_attributes(0.25, true);
  const AttentionAttrs capped = attention_attributes(0.5, false, 3.0);
  check_one(with_sinks(plain, DType::f16, Sizes{1, 4, 2}, {}, DType::f16));
  check_one(with_sinks(causal, DType::bf16, Sizes{1, 4, 2, 150, 10}, {}, DType::f32));  // some see no key
  check_one(
      with_sinks(capped, DType::f16, Sizes{2, 2, 2, 70, 100}, {operand(DType::f16, {2, 1, 70, 100})}, DType::f32));
}

TEST_F(AttentionPipeline, ScalesOfEverySign) {
  for (const double scale : {-0.25, 0.0, 2.0}) {
    const AttentionAttrs attrs = attention_attributes(scale);
    check_one(problem(attrs, DType::f16, {1, 2, 2, 70, 100, 64, 64}));  // of a tile whose registers suffice
  }
}

TEST_F(AttentionPipeline, MasksAndCaps) {
  const Sizes sizes = {2, 2, 2, 70, 100, 64, 64};
  const AttentionAttrs attrs = attention_attributes(0.5, false, 3.0), causal = attention_attributes(0.5, true);
  check_one(problem(attrs, DType::f16, sizes));
  check_one(problem(attrs, DType::f16, sizes, {operand(DType::f16, {2, 1, 70, 100})}));
  check_one(problem(causal, DType::f16, sizes, {operand(DType::f32, {100})}));
  CheckOptions options;
  Tensor mask = *Tensor::allocate(DType::boolean, {2, 1, 70, 100});
  for (int64_t i = 0; i < mask.volume(); ++i) mask.mutable_as<bool>()[i] = i % 100 == i / 100 || i * 7 % 5 < 2;
  options.inputs = {Tensor(), Tensor(), Tensor(), mask};
  check_one(problem(attrs, DType::f16, sizes, {operand(DType::boolean, {2, 1, 70, 100})}), options);
}

// Queries, keys and values are columns of one product, and heads are merged again behind a residual.
TEST_F(AttentionPipeline, ViewsOfOneProduct) {
  const AttentionAttrs attrs = attention_attributes(0.125);
  const auto view = [](int64_t first) {
    Operand heads = strided_operand(DType::f16, {2, 3, 70, 64}, {70 * 576, 64, 576, 1});
    heads.offset = Expr(first);
    return heads;
  };
  const Operand y = strided_operand(DType::f16, {2, 3, 70, 64}, {70 * 192, 64, 192, 1});
  check_one(op_problem(attrs, {view(0), view(0), view(0)}, {y}, "in=2; r2=add r0 r1; out r2", {y}));
}

TEST_F(AttentionPipeline, SequencesKnownLater) {
  const std::vector<int64_t> symbols = {2, 130, 210};
  CheckOptions options;
  options.symbols = symbols;
  const AttentionAttrs attrs = attention_attributes(0.25, true);
  const auto tensor = [&](SymbolId length) {
    return symbolic_operand(DType::f16, {Expr::symbol(0), 2, Expr::symbol(length), 64}, symbols);
  };
  check_one(op_problem(attrs, {tensor(1), tensor(2), tensor(2)}, {tensor(1)}), options);
}

TEST_F(AttentionPipeline, WhatIsRefused) {
  const AttentionAttrs attrs = attention_attributes(1);
  const auto refusal = [](Problem problem) {
    problem.target = test_target();
    return refusal_of(attention_pipeline_tactic(), problem);
  };
  EXPECT_EQ(refusal(problem(attrs, DType::f32, {})), "its input is f32");
  EXPECT_EQ(refusal(problem(attrs, DType::f16, {1, 1, 1, 4, 4, 264, 16})), "heads of 264 elements, 256 are handled");
  EXPECT_EQ(refusal(problem(attrs, DType::f8e4m3fn, {1, 1, 1, 4, 4, 144, 16})),
            "heads of 144 elements, 128 are handled");
  EXPECT_EQ(refusal(problem(attrs, DType::f8e4m3fn, {1, 1, 1, 4, 4, 40, 16})),
            "heads that do not lie in rows of whole 16 bytes, as the copy engine reads them");
  EXPECT_EQ(refusal(problem(attrs, DType::f16, {1, 1, 1, 4, 4, 12, 16})),
            "heads that do not lie in rows of whole 16 bytes, as the copy engine reads them");
  EXPECT_EQ(refusal(problem(attrs, DType::f16, {}, {operand(DType::f64, {210})})), "its mask is f64");
  EXPECT_EQ(refusal(with_sinks(attrs, DType::f16, Sizes{}, {}, DType::f64)), "its sinks are f64");
  Problem other = problem(attrs, DType::f16, {});
  other.target = test_target();
  other.target.limits.warpgroups = false;
  EXPECT_EQ(refusal_of(attention_pipeline_tactic(), other), "the device has no products of four warps");
}

}  // namespace
}  // namespace lathe::cuda
