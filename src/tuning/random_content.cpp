// SPDX-License-Identifier: Apache-2.0
#include "tuning/random_content.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "base/encoding.h"

namespace lathe {
namespace {

// Quantised values as networks have them: well inside the range of 8 bits.
int level(float value) { return static_cast<int>(std::clamp(value, -3.9f, 3.9f) * 32); }

}  // namespace

// Repeating a short random sequence is as good as a long one for kernels without data-dependent speed, and much faster.
void fill_randomly(Tensor& tensor, uint32_t seed, float deviation) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> noise(4099);
  std::generate(noise.begin(), noise.end(), [&] { return normal(generator); });
  if (is_storage_only(tensor.dtype())) {
    for (int64_t i = 0; i < tensor.volume(); ++i)
      store_code(tensor.dtype(), tensor.mutable_data(), i,
                 encode(tensor.dtype(), noise[static_cast<size_t>(i) % noise.size()]));
    return;
  }
  dispatch(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* values = tensor.mutable_as<T>();
    for (int64_t i = 0; i < tensor.volume(); ++i) {
      const float value = noise[static_cast<size_t>(i) % noise.size()];
      if constexpr (std::is_integral_v<T>)
        values[i] = static_cast<T>(std::is_signed_v<T> ? level(value) : std::abs(level(value)));
      else
        values[i] = T(value * deviation);
    }
  });
}

float deviation_of(const Problem& problem, const Operand& operand) {
  if (!problem.is(OpKind::attention) || &operand != &problem.inputs[0]) return 1;
  const double depth = static_cast<double>(opt_whole_dims(operand).back());
  const double scores = std::fabs(problem.attrs<AttentionAttrs>().scale) * std::sqrt(depth);
  return scores > 1 ? static_cast<float>(1 / scores) : 1;
}

void fill_with_ids(Tensor& tensor, int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  dispatch(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      const int64_t most =
          sizeof(T) < sizeof(int64_t) ? static_cast<int64_t>(std::numeric_limits<T>::max()) : INT64_MAX;
      std::uniform_int_distribution<int64_t> ids(0, std::clamp<int64_t>(count, 1, most) - 1);
      for (int64_t i = 0; i < tensor.volume(); ++i) tensor.mutable_as<T>()[i] = static_cast<T>(ids(generator));
    }
  });
}

}  // namespace lathe
