// SPDX-License-Identifier: Apache-2.0
// Attention as its plain evaluation has it, a thread per output element.
#pragma once

#include "attention/absent.cuh"
#include "attention/seen_keys.cuh"
#include "generic/element.cuh"

// The score of a query and a key before the softmax: c = (batch, head, query, key), `head` of k.
template <class A, class Q, class K, class Mask, class Distances>
LATHE_DEVICE double attention_score(const Q& q, const K& k, const Mask& mask, const Distances& distances,
                                    const long (&c)[4], long head) {
  if (!SeenKeys<A::causal, A::window>{q.dim(2), k.dim(2)}.sees(c[2], c[3])) return -infinite();
  if constexpr (!is_same<Mask, Unmasked>) {
    if constexpr (is_same<typename Mask::Type, bool>)
      if (!element(mask, c)) return A::hidden();
  }
  double score = 0;
  for (long i = 0; i < q.dim(3); ++i) {
    const long query[4] = {c[0], c[1], c[2], i}, key[4] = {c[0], head, c[3], i};
    score += widen(element(q, query)) * widen(element(k, key));
  }
  score *= A::scale();
  if (A::softcap() != 0) score = A::softcap() * tanh(score / A::softcap());
  if constexpr (!is_same<Distances, Undistanced>) {
    const long at[2] = {c[1], c[3] - c[2] + q.dim(2) - 1};
    score += widen(element(distances, at));
  }
  if constexpr (!is_same<Mask, Unmasked>) {
    if constexpr (!is_same<typename Mask::Type, bool>) score += widen(element(mask, c));
  }
  return score;
}

// kFloat8: weights are rounded to f8e4m3, as ops/float8_weights.h says.
template <class A, bool kFloat8, class Fusion, class Q, class K, class V, class Mask, class Sinks, class Distances,
          class Out>
LATHE_DEVICE void attention(const Fusion& fusion, const Q& q, const K& k, const V& v, const Mask& mask,
                            const Sinks& sinks, const Distances& distances, const Out& out) {
  for_each_element(out, [&](const auto& c) {
    const long head = c[1] / (q.dim(1) / k.dim(1));
    long at[4] = {c[0], c[1], c[2], 0};
    double largest = -infinite(), sum = 0, total = 0;
    for (at[3] = 0; at[3] < k.dim(2); ++at[3]) {
      const double score = attention_score<A>(q, k, mask, distances, at, head);
      if (!(score <= largest)) largest = score;
    }
    if constexpr (!is_same<Sinks, Unsunk>) {
      const long of_head[1] = {c[1]};
      const double sink = widen(element(sinks, of_head));
      if (!(sink <= largest)) largest = sink;
    }
    if constexpr (kFloat8) largest = (ceil(largest * 0x1.71547652b82fep0) - 8) / 0x1.71547652b82fep0;
    if constexpr (!is_same<Sinks, Unsunk>) {
      const long of_head[1] = {c[1]};
      sum = exp(widen(element(sinks, of_head)) - largest);
    }
    const bool is_mean = A::mean_for_none && largest == -infinite();
    for (at[3] = 0; at[3] < k.dim(2); ++at[3]) {
      double weight = is_mean ? 1.0 : exp(attention_score<A>(q, k, mask, distances, at, head) - largest);
      if constexpr (kFloat8) weight = to_float(from_float<f8e4m3>(static_cast<float>(weight)));
      const long value[4] = {c[0], head, at[3], c[3]};
      sum += weight;
      if (weight != 0) total += weight * widen(element(v, value));
    }
    put(fusion, out, c, k.dim(2) == 0 || (A::zeros_for_nan && !(sum > 0)) ? 0.0 : total / sum);
  });
}
