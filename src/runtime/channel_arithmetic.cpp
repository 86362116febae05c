// SPDX-License-Identifier: Apache-2.0
#include "runtime/channel_arithmetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ops/rules.h"

namespace lathe {
namespace {

constexpr int64_t kBlock = 512;

using Floats [[gnu::vector_size(16)]] = float;
using Doubles [[gnu::vector_size(32)]] = double;
constexpr int64_t kLanes = 4;

Floats load(const float* from) {
  Floats values;
  __builtin_memcpy(&values, from, sizeof values);
  return values;
}

bool is_computed_type(DType type) {
  return type == DType::f64 || type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

// Calls f with a value of the C++ type.
template <class F>
void for_computed_type(DType type, F&& f) {
  if (type == DType::f64) return f(double{});
  if (type == DType::f32) return f(float{});
  type == DType::f16 ? f(Half{}) : f(BFloat16{});
}

template <class T>
double widened(T value) {
  if constexpr (std::is_class_v<T>)
    return static_cast<float>(value);
  else
    return value;
}

void read_block(const Tensor& source, int64_t begin, std::span<double> block) {
  if (source.dtype() != DType::f32) return read_doubles(source, begin, block);
  const float* const from = source.as<float>() + begin;
  const auto count = static_cast<int64_t>(block.size());
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Doubles wide = __builtin_convertvector(load(from + i), Doubles);
    __builtin_memcpy(&block[static_cast<size_t>(i)], &wide, sizeof wide);
  }
  for (; i < count; ++i) block[static_cast<size_t>(i)] = from[i];
}

// values[i] = f(values[i], numbers[i * step]), where step is 0 or 1.
template <class F>
void join(double* values, int64_t count, const double* numbers, int64_t step, const F& f) {
  using Pair [[gnu::vector_size(16)]] = double;
  Pair others = {numbers[0], numbers[0]};
  int64_t i = 0;
  for (; i + 2 <= count; i += 2) {
    Pair pair;
    __builtin_memcpy(&pair, values + i, sizeof pair);
    if (step == 1) __builtin_memcpy(&others, numbers + i, sizeof others);
    pair = f(pair, others);
    __builtin_memcpy(values + i, &pair, sizeof pair);
  }
  if (i < count) values[i] = f(values[i], numbers[i * step]);
}

// What storing it and reading it back makes of a number.
void round_block(DType type, std::span<double> block) {
  if (type == DType::f64) return;
  for_computed_type(type, [&](auto zero) {
    for (double& value : block) value = widened(round_to<decltype(zero)>(value));
  });
}

void store_block(DType type, std::span<const double> block, std::byte* to) {
  if (type == DType::f64) return void(std::memcpy(to, block.data(), block.size_bytes()));
  for_computed_type(type, [&](auto zero) {
    for (const double value : block) {
      zero = round_to<decltype(zero)>(value);
      std::memcpy(to, &zero, sizeof zero);
      to += sizeof zero;
    }
  });
}

}  // namespace

bool holds_range(DType to, DType from) {
  return to == from || to == DType::f64 || (to == DType::f32 && from != DType::f64) ||
         (to == DType::bf16 && from == DType::f16);
}

Error ChannelArithmetic::OutOfRange::error() const {
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} is out of the range of {}, in which the engine has the weights: scale them, build with "
                           "more precision, or switch the check off by setWeightsValidation(false)",
                           number, name_of(type)),
               {}};
}

std::optional<ChannelStep> ChannelStep::of_cast(DType from, const CastAttrs& attributes) {
  if (!is_computed_type(from) || !is_computed_type(attributes.to)) return std::nullopt;
  return ChannelStep{std::nullopt, {}, 1, attributes.to};
}

std::optional<ChannelStep> ChannelStep::of(const ElementwiseAttrs& attributes, DType type, const Dims& dims,
                                           const Tensor& numbers) {
  const ElementwiseOp op = attributes.op;
  const bool is_known =
      op == ElementwiseOp::add || op == ElementwiseOp::sub || op == ElementwiseOp::mul || op == ElementwiseOp::div;
  if (!is_known || !is_computed_type(type) || numbers.dims().size() > dims.size()) return std::nullopt;
  // They go along some axes that follow each other, and are one along those before and behind.
  int64_t inner = 1, size = 1, outer = 1;
  for (size_t back = 1; back <= dims.size(); ++back) {
    const int64_t extent = dims[dims.size() - back];
    const int64_t own = back <= numbers.dims().size() ? numbers.dims()[numbers.dims().size() - back] : 1;
    if (own != 1 && (own != extent || outer != 1)) return std::nullopt;
    (own != 1 ? size : size == 1 ? inner : outer) *= extent;
  }
  return ChannelStep{op, numbers, inner, type};
}

ChannelArithmetic::ChannelArithmetic(Tensor source, std::vector<ChannelStep> steps)
    : source_(std::move(source)), steps_(std::move(steps)) {}

// Calls f(offset, count, numbers) for elements that have one number, or one each.
template <class F>
void ChannelArithmetic::for_each_run(const ChannelStep& step, int64_t begin, int64_t count, const F& f) {
  const int64_t size = step.numbers.volume();
  for (int64_t i = 0; i < count;) {
    const int64_t at = begin + i, channel = at / step.inner % size;
    const int64_t run = std::min(count - i, step.inner == 1 ? size - channel : step.inner - at % step.inner);
    f(i, run, step.numbers.as<double>() + channel);
    i += run;
  }
}

// `found`: null = nobody looks for what a cast makes infinite.
void ChannelArithmetic::run_block(int64_t begin, std::span<double> block, std::optional<OutOfRange>* found) const {
  read_block(source_, begin, block);
  std::array<double, kBlock> before;
  for (const ChannelStep& step : steps_) {
    if (!step.op) {
      const bool is_checked = found && step.type != DType::f64;
      if (is_checked) std::ranges::copy(block, before.begin());
      round_block(step.type, block);
      for (size_t i = 0; is_checked && i < block.size() && !*found; ++i)
        if (std::isfinite(before[i]) && !std::isfinite(block[i])) *found = OutOfRange{before[i], step.type};
      continue;
    }
    const auto combine = [&](auto f) {
      for_each_run(step, begin, static_cast<int64_t>(block.size()),
                   [&](int64_t first, int64_t run, const double* number) {
                     join(block.data() + first, run, number, step.inner == 1 ? 1 : 0, f);
                   });
    };
    switch (*step.op) {
      case ElementwiseOp::add:
        combine([](const auto& x, const auto& y) { return x + y; });
        break;
      case ElementwiseOp::sub:
        combine([](const auto& x, const auto& y) { return x - y; });
        break;
      case ElementwiseOp::mul:
        combine([](const auto& x, const auto& y) { return x * y; });
        break;
      default:
        combine([](const auto& x, const auto& y) { return x / y; });
    }
    round_block(step.type, block);
  }
}

bool ChannelArithmetic::begins_with_scaling() const {
  return source_.dtype() == DType::f32 && steps_.size() >= 3 && !steps_[0].op && steps_[0].type == DType::f64 &&
         steps_[1].op == ElementwiseOp::mul && !steps_[2].op && steps_[2].type == DType::f32 && steps_[1].inner > 1;
}

NarrowFloats ChannelArithmetic::narrowing() const {
  if (steps_.empty() || steps_.back().op || source_.dtype() != DType::f32) return nullptr;
  return steps_.size() == 1 || (steps_.size() == 4 && begins_with_scaling()) ? narrow_floats(type(), cpu::isa_level())
                                                                             : nullptr;
}

std::optional<ChannelFactors> ChannelArithmetic::factors() const {
  if (!is_scaling() || steps_[1].numbers.volume() * steps_[1].inner != volume()) return std::nullopt;
  return ChannelFactors{steps_[1].numbers.as<double>(), steps_[1].inner};
}

void ChannelArithmetic::scale(int64_t begin, int64_t count, float* to) const {
  const float* const from = source_.as<float>() + begin;
  const ScaleFloats scale = scale_floats(cpu::isa_level());
  for_each_run(steps_[1], begin, count, [&](int64_t first, int64_t run, const double* number) {
    scale(from + first, run, *number, to + first);
  });
}

// Whether a number is large, or none that is finite.
bool ChannelArithmetic::narrow(NarrowFloats narrow, int64_t begin, int64_t count, std::byte* to) const {
  const float* const from = source_.as<float>() + begin;
  if (steps_.size() == 1) return narrow(from, count, nullptr, to);
  bool is_large = false;
  for_each_run(steps_[1], begin, count, [&](int64_t first, int64_t run, const double* number) {
    is_large |= narrow(from + first, run, number, to + first * size_of(type()));
  });
  return is_large;
}

void ChannelArithmetic::run(int64_t begin, int64_t count, std::byte* to, std::optional<OutOfRange>* found) const {
  if (!found && is_scaling()) return scale(begin, count, reinterpret_cast<float*>(to));
  const NarrowFloats narrowing = this->narrowing();
  std::array<double, kBlock> block;
  for (const int64_t end = begin + count; begin < end; begin += kBlock, to += kBlock * size_of(type())) {
    const int64_t size = std::min(kBlock, end - begin);
    if (narrowing && (!narrow(narrowing, begin, size, to) || !found)) continue;
    const std::span<double> values(block.data(), static_cast<size_t>(size));
    run_block(begin, values, found);
    store_block(type(), values, to);
  }
}

std::optional<ChannelArithmetic::OutOfRange> ChannelArithmetic::find_out_of_range() const {
  std::optional<OutOfRange> found;
  std::array<std::byte, kBlock * sizeof(double)> made;
  for (int64_t i = 0; i < volume() && !found; i += kBlock) run(i, std::min(kBlock, volume() - i), made.data(), &found);
  return found;
}

}  // namespace lathe
