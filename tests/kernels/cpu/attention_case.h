// SPDX-License-Identifier: Apache-2.0
// Attentions of any sizes that the kernel is compared with the plain evaluation on.
#pragma once

#include <optional>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/evaluation_check.h"

namespace lathe::cpu {

// An attention, and what its mask has.
struct AttentionCase {
  int64_t batch = 1, heads = 1, shared = 1, queries = 1, keys = 1, depth = 16, width = 16;
  AttentionAttrs attrs = {};
  Dims mask = {};  // empty = none
  DType mask_type = DType::f32;
  bool has_sinks = false;
  // Keys up to its own that a query sees by the mask, but for the first two, which see none; 0 = any.
  int64_t window = 0;
  float hides = 0;                    // what a mask of numbers then adds to others
  int64_t distances = 0;              // rows of them: one, or one of each head
  std::optional<float> special = {};  // the element in the middle of the input `special_input`
  size_t special_input = 0;
};

// A mask of queries and keys of each batch, of which the second is padded on the left.
inline Tensor window_mask(const AttentionCase& c) {
  Tensor mask = *Tensor::allocate(c.mask_type, {c.batch, 1, c.queries, c.keys});
  for (int64_t at = 0; at < mask.volume(); ++at) {
    const int64_t j = at % c.keys, i = at / c.keys % c.queries, b = at / c.keys / c.queries;
    const int64_t own = i + c.keys - c.queries;
    const bool is_shown = i > 1 && j <= own && j > own - c.window && j >= 70 * b;
    if (c.mask_type == DType::boolean)
      mask.mutable_as<uint8_t>()[at] = is_shown;
    else
      mask.mutable_as<float>()[at] = is_shown ? static_cast<float>(j % 3) : c.hides;
  }
  return mask;
}

inline attention::AttentionParams params_of(const AttentionCase& c) {
  return {static_cast<float>(c.attrs.scale),
          static_cast<float>(c.attrs.softcap),
          static_cast<float>(c.attrs.hidden),
          c.attrs.causal,
          c.attrs.zeros_for_nan,
          !c.mask.empty(),
          c.attrs.factors == DType::bf16,
          c.has_sinks,
          c.attrs.window,
          c.attrs.mean_for_none,
          false,
          c.distances > 0};
}

// Factors that are bf16 already are not rounded: the weights alone are, by half a bit of eight.
inline Tolerance make_bf16(std::vector<Tensor>& inputs) {
  double largest = 0;
  for (size_t i = 0; i < 3; ++i) {
    auto* elements = inputs[i].mutable_as<float>();
    for (int64_t e = 0; e < inputs[i].volume(); ++e) elements[e] = static_cast<float>(BFloat16(elements[e]));
    for (int64_t e = 0; i == 2 && e < inputs[i].volume(); ++e)
      largest = std::max<double>(largest, std::fabs(elements[e]));
  }
  const Tolerance sums = tolerance_of(DType::f32);
  return {sums.absolute + largest / 256, sums.relative};
}

// The kernel on tensors that lie in any way, on one thread and three.
inline void expect_right(const AttentionCase& c, std::mt19937& random) {
  std::vector<Tensor> inputs = {random_tensor(DType::f32, {c.batch, c.heads, c.queries, c.depth}, random),
                                random_tensor(DType::f32, {c.batch, c.shared, c.keys, c.depth}, random),
                                random_tensor(DType::f32, {c.batch, c.shared, c.keys, c.width}, random)};
  if (c.special) {
    inputs[c.special_input].mutable_as<float>()[inputs[c.special_input].volume() / 2] = *c.special;
    auto* keys = inputs[1].mutable_as<float>();  // products with the largest number remain finite
    for (int64_t e = 0; e < inputs[1].volume(); ++e) keys[e] *= 0.125f;
  }
  if (!c.mask.empty()) inputs.push_back(c.window > 0 ? window_mask(c) : random_tensor(c.mask_type, c.mask, random));
  if (c.mask.empty()) inputs.emplace_back();
  inputs.push_back(c.has_sinks ? random_tensor(DType::f32, {c.heads}, random) : Tensor());
  if (c.distances > 0) inputs.push_back(random_tensor(DType::f32, {c.distances, c.queries + c.keys - 1}, random));
  const Tolerance tolerance = c.attrs.factors == DType::bf16 ? make_bf16(inputs) : tolerance_of(DType::f32);
  const Result<std::vector<Tensor>> want = run_op(c.attrs, inputs, 1);
  ASSERT_TRUE(want) << want.error().message;
  std::vector<TestTensor> strided;
  std::vector<TensorArg> args;
  strided.reserve(inputs.size());
  for (const Tensor& input : inputs)
    if (input.defined()) args.push_back(strided.emplace_back(TestTensor::copy_of(input, random)).arg);
  const auto kernel = make_kernel("attention", params_of(c));
  for (const int threads : {1, 3}) {
    // Rows are contiguous, and heads lie beside each other as the next product wants them, or one after the other.
    const Dims& dims = (*want)[0].dims();
    const bool by_query = threads == 1;
    TestTensor out =
        TestTensor::strided(dims, by_query ? Dims{dims[2] * dims[1] * dims[3], dims[3], dims[1] * dims[3], 1}
                                           : Dims{dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1});
    run_kernel(*kernel, args, {out.arg}, threads);
    EXPECT_EQ(differences(out.checked_content(), (*want)[0], tolerance), "")
        << to_text(c.attrs) << " queries " << c.queries << " keys " << c.keys << " mask " << c.mask.size();
  }
}

}  // namespace lathe::cpu
