// SPDX-License-Identifier: Apache-2.0
// Arithmetic on channels, in pieces and packed, is the plain evaluation of its ops.
#include "runtime/channel_arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ops/rules.h"
#include "runtime/place_constants.h"

namespace lathe {
namespace {

using Op = ElementwiseOp;

Tensor random_tensor(DType type, const Dims& dims, std::mt19937& random) {
  Tensor tensor = *Tensor::allocate(type, dims);
  std::vector<double> values(static_cast<size_t>(tensor.volume()));
  for (double& value : values) value = std::ldexp(static_cast<double>(random() % 200'001) / 100'000 - 1, 3);
  if (values.size() > 40) values[7] = NAN, values[21] = -INFINITY, values[33] = -0.0;
  from_doubles(values, tensor);
  return tensor;
}

// Steps beside the ops that they stand for.
class Chain {
 public:
  explicit Chain(Tensor source) : source_(std::move(source)), result_(source_) {}

  void cast(DType to) {
    CastAttrs attributes;
    attributes.to = to;
    steps_.push_back(*ChannelStep::of_cast(result_.dtype(), attributes));
    result_ = (*run_op(attributes, std::array{result_}, 1))[0];
  }
  void combine(Op op, const Tensor& operand) {
    ElementwiseAttrs attributes;
    attributes.op = op;
    const Tensor numbers = Tensor::from<double>(operand.dims(), to_doubles(operand));
    const auto step = ChannelStep::of(attributes, result_.dtype(), result_.dims(), numbers);
    ASSERT_TRUE(step);
    steps_.push_back(*step);
    result_ = (*run_op(attributes, std::array{result_, operand}, 1))[0];
  }
  ChannelArithmetic arithmetic() const { return ChannelArithmetic(source_, steps_); }
  const Tensor& source() const { return source_; }
  const Tensor& result() const { return result_; }

 private:
  Tensor source_, result_;
  std::vector<ChannelStep> steps_;
};

// As folded batch normalisation, of the channels along `axis`.
Chain scaled(DType from, DType to, const Dims& dims, size_t axis, std::mt19937& random) {
  Dims channels(dims.size() - (axis == 0 ? 0 : axis), 1);  // of as many dims as the weights, or of the last ones
  channels[0] = dims[axis];
  Chain chain(random_tensor(from, dims, random));
  chain.cast(DType::f64);
  chain.combine(Op::mul, random_tensor(DType::f64, channels, random));
  chain.cast(to);
  return chain;
}

void expect_evaluation(const Chain& chain) {
  const ChannelArithmetic arithmetic = chain.arithmetic();
  const Tensor& wanted = chain.result();
  ASSERT_EQ(arithmetic.type(), wanted.dtype());
  const int64_t size = size_of(wanted.dtype());
  for (const int64_t piece : {arithmetic.volume(), int64_t{1000}, int64_t{37}}) {
    std::vector<std::byte> made(wanted.bytes());
    for (int64_t i = 0; i < arithmetic.volume(); i += piece)
      arithmetic.run(i, std::min(piece, arithmetic.volume() - i), made.data() + i * size);
    EXPECT_TRUE(std::ranges::equal(made, wanted.raw())) << piece;
  }
}

TEST(ChannelArithmetic, GivesTheBitsOfItsOps) {
  std::mt19937 random(3);
  for (const DType from : {DType::f32, DType::f16, DType::bf16, DType::f64})
    for (const DType to : {DType::f32, DType::f16, DType::bf16, DType::f64})
      for (const size_t axis : {0, 1, 2}) {
        SCOPED_TRACE(fmt::format("{} {} {}", name_of(from), name_of(to), axis));
        expect_evaluation(scaled(from, to, {11, 13, 17}, axis, random));
      }
}

TEST(ChannelArithmetic, TakesSeveralOpsAndRoundsInBetween) {
  std::mt19937 random(5);
  const Dims dims = {9, 70, 8};
  for (const Op op : {Op::add, Op::sub, Op::mul, Op::div}) {
    Chain chain(random_tensor(DType::f32, dims, random));
    chain.combine(op, random_tensor(DType::f32, {70, 1}, random));
    chain.combine(Op::mul, random_tensor(DType::f32, {}, random));
    chain.cast(DType::bf16);
    chain.combine(op, random_tensor(DType::bf16, {9, 1, 1}, random));
    chain.cast(DType::f32);
    expect_evaluation(chain);
  }
}

// What weights of an engine of 16-bit floats are made by.
TEST(ChannelArithmetic, NarrowsFloatsAsTheyAreAndScaled) {
  std::mt19937 random(6);
  for (const DType to : {DType::f16, DType::bf16})
    for (const size_t axis : {0, 1, 2}) {
      SCOPED_TRACE(fmt::format("{} {}", name_of(to), axis));
      Chain chain(random_tensor(DType::f32, {11, 13, 17}, random));
      chain.cast(to);
      expect_evaluation(chain);
      Chain folded = scaled(DType::f32, DType::f32, {11, 13, 17}, axis, random);
      folded.cast(to);
      expect_evaluation(folded);
      EXPECT_FALSE(folded.arithmetic().holds_range());
      EXPECT_FALSE(folded.arithmetic().find_out_of_range());
    }
}

TEST(ChannelArithmetic, LeavesOtherOpsToTheirEvaluation) {
  const auto step = [](Op op, DType type, const Dims& operand) {
    ElementwiseAttrs attributes;
    attributes.op = op;
    return ChannelStep::of(attributes, type, {4, 6}, *Tensor::allocate(type, operand)).has_value();
  };
  EXPECT_TRUE(step(Op::mul, DType::f32, {4, 1}));
  EXPECT_FALSE(step(Op::pow, DType::f32, {4, 1}));
  EXPECT_FALSE(step(Op::mul, DType::i32, {4, 1}));
  EXPECT_TRUE(step(Op::mul, DType::f32, {4, 6}));
  EXPECT_FALSE(step(Op::mul, DType::f32, {6, 4}));
  EXPECT_FALSE(step(Op::mul, DType::f32, {4, 1, 1}));  // the result has other dims
  CastAttrs cast;
  cast.to = DType::i8;
  EXPECT_FALSE(ChannelStep::of_cast(DType::f32, cast));
  cast.to = DType::f32;
  EXPECT_FALSE(ChannelStep::of_cast(DType::i8, cast));
}

TEST(ChannelArithmetic, FindsNumbersThatATypeCannotHold) {
  const auto find = [](DType to, float number, double factor) {
    std::vector<float> values(5000, 0.5f);
    values[4711] = number;
    values[3] = INFINITY, values[2500] = NAN;  // were so before
    Chain chain(Tensor::from<float>({50, 100}, values));
    chain.cast(DType::f64);
    chain.combine(Op::mul, Tensor::from<double>({50, 1}, std::vector<double>(50, factor)));
    chain.cast(to);
    return chain.arithmetic().find_out_of_range();
  };
  EXPECT_FALSE(find(DType::f32, 3e38f, 1));
  EXPECT_FALSE(find(DType::f32, -3e38f, 1));
  EXPECT_FALSE(find(DType::f16, 65504, 1));
  const auto large = find(DType::f32, -3e38f, 2);
  ASSERT_TRUE(large);
  EXPECT_EQ(large->number, -3e38f * 2.0);
  EXPECT_EQ(large->type, DType::f32);
  const auto narrow = find(DType::f16, 65536, 1);
  ASSERT_TRUE(narrow);
  EXPECT_EQ(narrow->number, 65536);
  EXPECT_EQ(narrow->type, DType::f16);
}

// Where a block has a number that is large, or was no finite one, each is looked at as its ops make it.
TEST(ChannelArithmetic, FindsWhatScalingAndNarrowingMakesInfinite) {
  const auto find = [](DType to, float number, double factor) {
    std::vector<float> values(5000, 0.5f);
    values[4711] = number;
    values[4700] = INFINITY, values[4790] = NAN;
    Chain chain(Tensor::from<float>({50, 100}, values));
    chain.cast(DType::f64);
    chain.combine(Op::mul, Tensor::from<double>({50, 1}, std::vector<double>(50, factor)));
    chain.cast(DType::f32);
    chain.cast(to);
    return chain.arithmetic().find_out_of_range();
  };
  EXPECT_FALSE(find(DType::f16, 655.04f, 100));
  EXPECT_FALSE(find(DType::bf16, 1e30f, 100));
  const auto narrow = find(DType::f16, -660, 100);
  ASSERT_TRUE(narrow);
  EXPECT_EQ(narrow->number, -66000);
  EXPECT_EQ(narrow->type, DType::f16);
  const auto wide = find(DType::bf16, 3e38f, 2);
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->number, 2 * double{3e38f});
  EXPECT_EQ(wide->type, DType::f32);
}

// However many channels make numbers larger, and whether the one with the large number does.
TEST(ChannelArithmetic, LooksAtTheChannelsThatGrow) {
  for (const int growing : {0, 1, 20, 50})
    for (const int with_large : {0, 19, 49}) {
      std::vector<float> values(5000, 0.5f);
      values[with_large * 100 + 7] = -3e38f;
      std::vector<double> factors(50, -1);
      std::fill_n(factors.begin(), growing, -2);
      Chain chain(Tensor::from<float>({50, 100}, values));
      chain.cast(DType::f64);
      chain.combine(Op::mul, Tensor::from<double>({50, 1}, factors));
      chain.cast(DType::f32);
      const auto found = chain.arithmetic().find_out_of_range();
      ASSERT_EQ(found.has_value(), with_large < growing) << growing << " " << with_large;
      EXPECT_EQ(found ? found->number : 0, with_large < growing ? 2 * double{3e38f} : 0);
    }
}

// Each piece of a constant is computed and packed on its own.
TEST(ConstantPlacer, PacksWhatItComputes) {
  std::mt19937 random(9);
  for (const DType to : {DType::f32, DType::f16})
    for (const int64_t taps : {1, 9})
      for (const int threads : {1, 3}) {
        const int64_t outputs = 80, inputs = 130, width = 32, k = inputs * taps;
        const Chain chain = scaled(DType::f32, to, {outputs, inputs, taps}, 0, random);
        const Packing panels{
            {96 * k},
            {{0, 0, {2, inputs, taps, width}, {width * k, taps, 1, k}, {width * k, width, inputs * width, 1}},
             {64 * k, 64 * k, {inputs, taps, 16}, {taps, 1, k}, {width, inputs * width, 1}}}};
        const Packing backwards{{outputs * k}, {{outputs * k - 1, 0, {outputs * k}, {-1}, {1}}}};
        const Packing swapped{{k, outputs}, {{0, 0, {outputs, k}, {k, 1}, {1, outputs}}}};
        const Packing first{{5}, {{3, 0, {5}, {0}, {1}}}};  // one element, again and again
        for (const std::optional<Packing>& packing :
             {std::optional<Packing>(), std::optional(panels), std::optional(backwards), std::optional(swapped),
              std::optional(first)}) {
          const Tensor wanted = packing ? *packing->apply(chain.result()) : chain.result();
          const Packing* const order = packing ? &*packing : nullptr;
          const ConstantContent computed{chain.arithmetic(), order};
          const ConstantContent copied{ChannelArithmetic(chain.result()), order};
          std::vector<std::byte> made(wanted.bytes()), copy(wanted.bytes());
          Result<ConstantPlacer> placer =
              ConstantPlacer::create(std::array{ConstantPlacer::Place{&computed, made.data(), made.size()},
                                                ConstantPlacer::Place{&copied, copy.data(), copy.size()}},
                                     threads);
          ASSERT_TRUE(placer);
          EXPECT_EQ(placer->run(RangeCheck::on), ConstantPlacer::Found::none);
          EXPECT_TRUE(std::ranges::equal(made, wanted.raw())) << name_of(to) << " " << taps << " " << threads;
          EXPECT_TRUE(std::ranges::equal(copy, wanted.raw()));
        }
      }
}

TEST(ConstantPlacer, PlacesPartsOfWhatStaysInItsOrder) {
  std::mt19937 random(10);
  Chain chain(random_tensor(DType::f32, {40'000}, random));
  chain.cast(DType::bf16);
  const ConstantContent computed{chain.arithmetic()}, copied{ChannelArithmetic(chain.result())};
  const std::span<const std::byte> wanted = chain.result().raw();
  for (const ConstantContent* content : {&computed, &copied}) {
    std::vector<std::byte> made(wanted.size());
    for (uint64_t first = 0, bytes = 0; first < made.size(); first += bytes) {
      bytes = std::min<uint64_t>(33'334, made.size() - first);
      Result<ConstantPlacer> placer =
          ConstantPlacer::create(std::array{ConstantPlacer::Place{content, made.data() + first, bytes, first}}, 1);
      ASSERT_TRUE(placer);
      placer->run();
    }
    EXPECT_TRUE(std::ranges::equal(made, wanted));
  }
}

TEST(ConstantPlacer, LooksForNumbersOutOfRangeWhereItIsAsked) {
  std::vector<float> values(100'000, 1);
  values[77'777] = 1e5f;
  Chain chain(Tensor::from<float>({100'000}, values));
  chain.cast(DType::f16);
  const ConstantContent content{chain.arithmetic()};
  std::vector<std::byte> made(chain.result().bytes());
  for (const int threads : {1, 3}) {
    Result<ConstantPlacer> placer =
        ConstantPlacer::create(std::array{ConstantPlacer::Place{&content, made.data(), made.size()}}, threads);
    ASSERT_TRUE(placer);
    EXPECT_EQ(placer->run(RangeCheck::off), ConstantPlacer::Found::none);
    EXPECT_EQ(placer->run(RangeCheck::on), ConstantPlacer::Found::out_of_range);
  }
}

}  // namespace
}  // namespace lathe
