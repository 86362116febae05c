// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "ops/random_shape.h"

namespace lathe {

Result<> infer_numpy_random(InferContext& context) {
  LATHE_ASSIGN(Shape output, drawn_shape(context, "numpy_random"));
  context.set(0, DType::f64, std::move(output));
  return {};
}

// Two words of the Mersenne Twister make 53 digits (genrand_res53 of its authors).
Result<> eval_numpy_random(EvalContext& context) {
  std::mt19937 generator(static_cast<uint32_t>(context.input(1).at(0)));
  double* y = context.output(0).mutable_as<double>();
  for (int64_t i = 0; i < context.output(0).volume(); ++i) {
    const auto high = static_cast<double>(generator() >> 5), low = static_cast<double>(generator() >> 6);
    y[i] = (high * 67108864.0 + low) / 9007199254740992.0;
  }
  return {};
}

}  // namespace lathe
