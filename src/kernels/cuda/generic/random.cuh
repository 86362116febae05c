// SPDX-License-Identifier: Apache-2.0
// The numbers of base/philox.h, bit by bit: sums of products are fused where they are there, and nowhere else.
#pragma once

#include "generic/rounded.cuh"

LATHE_DEVICE uint64 random_bits(uint64 seed, uint64 position) {
  const uint64 block = position / 2;
  uint32 c[4] = {static_cast<uint32>(block), static_cast<uint32>(block >> 32), 0, 0};
  uint32 key_0 = static_cast<uint32>(seed), key_1 = static_cast<uint32>(seed >> 32);
  LATHE_UNROLL
  for (int round = 0; round < 10; ++round) {
    const uint64 first = static_cast<uint64>(0xD2511F53u) * c[0], second = static_cast<uint64>(0xCD9E8D57u) * c[2];
    const uint32 c1 = c[1], c3 = c[3];
    c[0] = static_cast<uint32>(second >> 32) ^ c1 ^ key_0;
    c[1] = static_cast<uint32>(second);
    c[2] = static_cast<uint32>(first >> 32) ^ c3 ^ key_1;
    c[3] = static_cast<uint32>(first);
    key_0 += 0x9E3779B9u;
    key_1 += 0xBB67AE85u;
  }
  const bool second_half = position % 2 != 0;
  return static_cast<uint64>(second_half ? c[3] : c[1]) << 32 | (second_half ? c[2] : c[0]);
}

template <int N>
LATHE_DEVICE double polynomial(double x, const double (&c)[N]) {
  double sum = c[N - 1];
  LATHE_UNROLL
  for (int i = N - 2; i >= 0; --i) sum = fma(sum, x, c[i]);
  return sum;
}

LATHE_DEVICE double exact_log(double x) {
  constexpr uint64 kMantissa = 0xFFFFFFFFFFFFF, kSqrtHalf = 0x3FE6A09E667F3BCD;
  const uint64 shifted = bit_cast<uint64>(x) - kSqrtHalf + (uint64{1023} << 52);
  const double exponent = static_cast<double>(static_cast<int64>(shifted >> 52) - 1023);
  const double m = bit_cast<double>((shifted & kMantissa) + kSqrtHalf);
  const double s = (m - 1) / (m + 1), square = product(s, s);
  const double odd[] = {2.0,      2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                        2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  return fma(exponent, 0x1.62e42fefa39efp-1, product(s, polynomial(square, odd)));
}

LATHE_DEVICE double normal_quantile(double p) {
  const double q = p - 0.5;
  if (fabs(q) <= 0.425) {
    const double a[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                        1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                        3.3430575583588128105e+4, 2.5090809287301226727e+3};
    const double b[] = {1.0,
                        4.2313330701600911252e+1,
                        6.8718700749205790830e+2,
                        5.3941960214247511077e+3,
                        2.1213794301586595867e+4,
                        3.9307895800092710610e+4,
                        2.8729085735721942674e+4,
                        5.2264952788528545610e+3};
    const double r = fma(-q, q, 0.180625);
    return product(q, polynomial(r, a)) / polynomial(r, b);
  }
  const double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                      3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                      2.27238449892691845833e-2, 7.74545014278341407640e-4};
  const double d[] = {1.0,
                      2.05319162663775882187e0,
                      1.67638483018380384940e0,
                      6.89767334985100004550e-1,
                      1.48103976427480074590e-1,
                      1.51986665636164571966e-2,
                      5.47593808499534494600e-4,
                      1.05075007164441684324e-9};
  const double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                      2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                      2.71155556874348757815e-5, 2.01033439929228813265e-7};
  const double f[] = {1.0,
                      5.99832206555887937690e-1,
                      1.36929880922735805310e-1,
                      1.48753612908506148525e-2,
                      7.86869131145613259100e-4,
                      1.84631831751005468180e-5,
                      1.42151175831644588870e-7,
                      2.04426310338993978564e-15};
  const double r = sqrt(-exact_log(q < 0 ? p : 1 - p));
  const double z =
      r <= 5 ? polynomial(r - 1.6, c) / polynomial(r - 1.6, d) : polynomial(r - 5, e) / polynomial(r - 5, f);
  return q < 0 ? -z : z;
}

template <class Attributes, int kDigits, class Seed, class Out>
LATHE_DEVICE void random(const Seed& seed, double last, const Out& out) {
  using T = typename Out::Type;
  constexpr bool kNormal = Attributes::op == Attributes::op_type::normal;
  for_each(volume_of(out), [&](long i) {
    long c[kCoordinates<Out>];
    unflatten(out, i, c);
    const uint64 bits = random_bits(static_cast<uint64>(seed.data[0]), static_cast<uint64>(i));
    const double a = Attributes::a(), b = Attributes::b();
    if constexpr (kNormal) {
      const double p = product(static_cast<double>(bits >> 12) + 0.5, 0x1p-52);
      element(out, c) = narrow<T>(fma(normal_quantile(p), b, a));
    } else {
      constexpr double kUnit = 1.0 / static_cast<double>(uint64{1} << kDigits);
      const double value = fma(product(static_cast<double>(bits >> (64 - kDigits)), kUnit), b - a, a);
      element(out, c) = narrow<T>(value < last ? value : last);
    }
  });
}
