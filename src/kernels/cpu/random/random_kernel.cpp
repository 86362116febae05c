// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/random/random.h"

#include <algorithm>
#include <bit>

#include "base/philox.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

// To 16 bits by way of f32 that is rounded to odd, so that rounding twice is rounding once.
template <class T>
T rounded(double value) {
  if constexpr (std::is_class_v<T>) {
    const auto nearest = static_cast<float>(value);
    if (nearest == value || !std::isfinite(nearest)) return T(nearest);
    auto bits = std::bit_cast<uint32_t>(nearest);
    if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
    return T(std::bit_cast<float>(bits | 1));
  } else {
    return static_cast<T>(value);
  }
}

class RandomKernel final : public Kernel {
 public:
  explicit RandomKernel(const RandomParams& params) : p_(params) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    if (inputs.empty() || inputs.size() > 2 || outputs.size() != 1)
      return fail(ErrorCode::invalid_argument, "random: {} inputs and {} outputs given, 1 or 2 and 1 expected",
                  inputs.size(), outputs.size());
    if (inputs.back().dtype != DType::i64 || inputs.back().volume() != 1 || !is_floating(outputs[0].dtype))
      return fail(ErrorCode::type_mismatch, "random: {} by a seed of {}", name_of(outputs[0].dtype),
                  name_of(inputs.back().dtype));
    return {};
  }

  void run(const Launch& launch) const override {
    const auto seed = static_cast<uint64_t>(*launch.inputs.back().as<int64_t>());
    const TensorArg& y = launch.outputs[0];
    dispatch(y.dtype, [&](auto zero) {
      using T = decltype(zero);
      constexpr int64_t kMinTaskElements = 1 << 10;
      if constexpr (!std::is_integral_v<T>)
        launch.pool.parallel_for(y.volume(), kMinTaskElements,
                                 [&](int64_t begin, int64_t end, int) { write<T>(y, seed, begin, end); });
    });
  }

 private:
  double number(uint64_t bits) const {
    if (p_.normal) return std::fma(normal_number(bits), p_.b, p_.a);
    return std::min(std::fma(uniform_number(bits, p_.digits), p_.b - p_.a, p_.a), p_.last);
  }
  // The elements from `begin` on, in row-major order.
  template <class T>
  void write(const TensorArg& y, uint64_t seed, int64_t begin, int64_t end) const {
    const int64_t row = y.rank > 0 ? y.dims[y.rank - 1] : 1, step = y.rank > 0 ? y.strides[y.rank - 1] : 1;
    while (begin < end) {
      int64_t offset = 0, rest = begin / row;
      for (int d = y.rank - 2; d >= 0; rest /= y.dims[d--]) offset += rest % y.dims[d] * y.strides[d];
      const int64_t first = begin % row, last = std::min(row, first + end - begin);
      for (int64_t i = first; i < last; ++i)
        y.as<T>()[offset + i * step] = rounded<T>(number(random_bits(seed, static_cast<uint64_t>(begin + i - first))));
      begin += last - first;
    }
  }

  const RandomParams p_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_random(const Record& record) {
  const auto params = decode_params<RandomParams>(record.params);
  if (record.program || !params || params->digits < 1 || params->digits > 53) return refuse_params("random");
  return std::make_unique<RandomKernel>(*params);
}

}  // namespace lathe::cpu
