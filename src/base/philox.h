// SPDX-License-Identifier: Apache-2.0
// Random numbers without state: Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"). A number
// depends on a seed and its position alone, so that any thread of any device can make it. Every operation is exact or
// rounded once by IEEE 754 (sums of products are fused ones), so that all devices make the same bits.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace lathe {

inline std::array<uint32_t, 4> philox_block(uint64_t seed, uint64_t counter) {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  auto key_0 = static_cast<uint32_t>(seed), key_1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * c[0], second = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(second >> 32) ^ c[1] ^ key_0, static_cast<uint32_t>(second),
         static_cast<uint32_t>(first >> 32) ^ c[3] ^ key_1, static_cast<uint32_t>(first)};
    key_0 += 0x9E3779B9;
    key_1 += 0xBB67AE85;
  }
  return c;
}

// 64 random bits for a position; a block serves two.
inline uint64_t random_bits(uint64_t seed, uint64_t position) {
  const std::array<uint32_t, 4> block = philox_block(seed, position / 2);
  const size_t half = position % 2 * 2;
  return uint64_t{block[half + 1]} << 32 | block[half];
}

// In [0, 1), a multiple of 2^-digits.
inline double uniform_number(uint64_t bits, int digits) {
  return std::ldexp(static_cast<double>(bits >> (64 - digits)), -digits);
}

// c[0] + c[1] x + ...
template <size_t n>
double polynomial(double x, const double (&c)[n]) {
  double sum = c[n - 1];
  for (size_t i = n - 1; i-- > 0;) sum = std::fma(sum, x, c[i]);
  return sum;
}

// The natural logarithm of a normal number in (0, 1], to about an ulp: x = m 2^e with m in [0.707, 1.414], and
// ln m = 2 artanh((m - 1) / (m + 1)).
inline double exact_log(double x) {
  constexpr uint64_t kMantissa = 0xFFFFFFFFFFFFF, kSqrtHalf = 0x3FE6A09E667F3BCD;
  const auto bits = std::bit_cast<uint64_t>(x);
  const uint64_t shifted = bits - kSqrtHalf + (uint64_t{1023} << 52);
  const double exponent = static_cast<double>(static_cast<int64_t>(shifted >> 52) - 1023);
  const auto m = std::bit_cast<double>((shifted & kMantissa) + kSqrtHalf);
  const double s = (m - 1) / (m + 1), square = s * s;
  static constexpr double kOdd[] = {2.0,      2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                    2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  return std::fma(exponent, 0x1.62e42fefa39efp-1, s * polynomial(square, kOdd));
}

// The number below which a standard normal variable lies with the probability p, in (0, 1): Wichura's AS 241, PPND16.
inline double normal_quantile(double p) {
  static constexpr double kA[] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                  1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                  3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr double kB[] = {1.0,
                                  4.2313330701600911252e+1,
                                  6.8718700749205790830e+2,
                                  5.3941960214247511077e+3,
                                  2.1213794301586595867e+4,
                                  3.9307895800092710610e+4,
                                  2.8729085735721942674e+4,
                                  5.2264952788528545610e+3};
  static constexpr double kC[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                  3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                  2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double kD[] = {1.0,
                                  2.05319162663775882187e0,
                                  1.67638483018380384940e0,
                                  6.89767334985100004550e-1,
                                  1.48103976427480074590e-1,
                                  1.51986665636164571966e-2,
                                  5.47593808499534494600e-4,
                                  1.05075007164441684324e-9};
  static constexpr double kE[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                  2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                  2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double kF[] = {1.0,
                                  5.99832206555887937690e-1,
                                  1.36929880922735805310e-1,
                                  1.48753612908506148525e-2,
                                  7.86869131145613259100e-4,
                                  1.84631831751005468180e-5,
                                  1.42151175831644588870e-7,
                                  2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = std::fma(-q, q, 0.180625);
    return q * polynomial(r, kA) / polynomial(r, kB);
  }
  const double r = std::sqrt(-exact_log(q < 0 ? p : 1 - p));
  const double z =
      r <= 5 ? polynomial(r - 1.6, kC) / polynomial(r - 1.6, kD) : polynomial(r - 5, kE) / polynomial(r - 5, kF);
  return q < 0 ? -z : z;
}

// A standard normal number of random bits.
inline double normal_number(uint64_t bits) {
  return normal_quantile(std::ldexp(static_cast<double>(bits >> 12) + 0.5, -52));
}

}  // namespace lathe
