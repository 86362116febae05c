// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/order_keys.h"

#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

template <class Key>
constexpr Key kGreatest = static_cast<Key>((uint64_t{1} << (sizeof(Key) * 8 - 1)) - 1);
template <class Key>
constexpr Key kLeast = -kGreatest<Key> - 1;

// The bits of a float are sign and magnitude; with the magnitude of negative ones inverted they compare as integers.
template <class Bits, class Key>
void keys_of_floats(const Bits* source, int64_t stride, int64_t count, Key infinity, KeyOrder order, Key* keys) {
  constexpr Key kMagnitude = kGreatest<Bits>;
  constexpr Key kMinusZero = kLeast<Bits>;
  const Key flip = order.largest ? 0 : -1;
  const Key nan = order.largest || order.nan_wins ? kGreatest<Key> : kLeast<Key>;
  for (int64_t i = 0; i < count; ++i) {
    Key bits = source[i * stride];
    bits = bits == kMinusZero ? 0 : bits;
    const Key magnitude = bits & kMagnitude;
    const Key key = (bits < 0 ? bits ^ kMagnitude : bits) ^ flip;
    keys[i] = magnitude > infinity ? nan : key;
  }
}

template <class T, class Key>
void keys_of_integers(const T* source, int64_t stride, int64_t count, KeyOrder order, Key* keys) {
  // Unsigned numbers as wide as the key: the top bit is a sign otherwise.
  constexpr Key kSign = static_cast<T>(-1) > 0 && sizeof(T) == sizeof(Key) ? kLeast<Key> : 0;
  const Key flip = (order.largest ? 0 : -1) ^ kSign;
  for (int64_t i = 0; i < count; ++i) keys[i] = static_cast<Key>(source[i * stride]) ^ flip;
}

template <class Key>
Key greatest(const Key* keys, int64_t count) {
  Key best = keys[0];
  for (int64_t i = 1; i < count; ++i) best = keys[i] > best ? keys[i] : best;
  return best;
}

template <class Key>
void keep(const Key* keys, int64_t count, Key position, bool last, Key* best, Key* positions) {
  if (last) {
    for (int64_t i = 0; i < count; ++i) {
      const bool better = keys[i] >= best[i];
      best[i] = better ? keys[i] : best[i];
      positions[i] = better ? position : positions[i];
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const bool better = keys[i] > best[i];
      best[i] = better ? keys[i] : best[i];
      positions[i] = better ? position : positions[i];
    }
  }
}

template <bool Each, class Key>
int64_t above(const Key* keys, int64_t begin, int64_t count, const Key* bounds, uint16_t* numbers, int64_t found) {
  for (int64_t i = begin; i < count; ++i) {
    numbers[found] = static_cast<uint16_t>(i);
    found += keys[i] > bounds[Each ? i : 0];
  }
  return found;
}

// One bit for each lane that the comparison holds of.
#if defined(LATHE_ISA_LEVEL_avx512)
uint32_t lanes_above(IntVec a, IntVec b) {
  return _mm512_cmpgt_epi32_mask(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b));
}
#elif defined(LATHE_ISA_LEVEL_avx2)
uint32_t lanes_above(IntVec a, IntVec b) {
  const __m256i greater = _mm256_cmpgt_epi32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b));
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(greater)));
}
#else
uint32_t lanes_above(IntVec a, IntVec b) {
  uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= static_cast<uint32_t>(a[i] > b[i]) << i;
  return bits;
}
#endif

template <bool Each>
int64_t above_narrow(const int32_t* keys, int64_t count, const int32_t* bounds, uint16_t* numbers) {
  int64_t found = 0, i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const IntVec bound = Each ? load_int(bounds + i) : broadcast_int(*bounds);
    for (uint32_t bits = lanes_above(load_int(keys + i), bound); bits; bits &= bits - 1)
      numbers[found++] = static_cast<uint16_t>(i + __builtin_ctz(bits));
  }
  return above<Each>(keys, i, count, bounds, numbers, found);
}

struct Row {
  const void* source;
  int64_t stride, count;
  KeyOrder order;
  void* keys;

  template <class Bits, class Key>
  void of_floats(Key infinity) const {
    const auto* from = static_cast<const Bits*>(source);
    auto* to = static_cast<Key*>(keys);
    stride == 1 ? keys_of_floats<Bits, Key>(from, 1, count, infinity, order, to)
                : keys_of_floats<Bits, Key>(from, stride, count, infinity, order, to);
  }
  template <class T, class Key>
  void of_integers() const {
    const auto* from = static_cast<const T*>(source);
    auto* to = static_cast<Key*>(keys);
    stride == 1 ? keys_of_integers<T, Key>(from, 1, count, order, to)
                : keys_of_integers<T, Key>(from, stride, count, order, to);
  }
};

}  // namespace

void order_keys(DType type, const void* source, int64_t stride, int64_t count, KeyOrder order, void* keys) {
  const Row row{source, stride, count, order, keys};
  switch (type) {
    case DType::f32:
      return row.of_floats<int32_t, int32_t>(0x7f800000);
    case DType::f64:
      return row.of_floats<int64_t, int64_t>(0x7ff0000000000000);
    case DType::f16:
      return row.of_floats<int16_t, int32_t>(0x7c00);
    case DType::bf16:
      return row.of_floats<int16_t, int32_t>(0x7f80);
    case DType::i8:
      return row.of_integers<int8_t, int32_t>();
    case DType::i16:
      return row.of_integers<int16_t, int32_t>();
    case DType::i32:
      return row.of_integers<int32_t, int32_t>();
    case DType::i64:
      return row.of_integers<int64_t, int64_t>();
    case DType::u16:
      return row.of_integers<uint16_t, int32_t>();
    case DType::u32:
      return row.of_integers<uint32_t, int32_t>();
    case DType::u64:
      return row.of_integers<uint64_t, int64_t>();
    default:
      return row.of_integers<uint8_t, int32_t>();
  }
}

int64_t greatest_key(bool wide, const void* keys, int64_t count) {
  return wide ? greatest(static_cast<const int64_t*>(keys), count) : greatest(static_cast<const int32_t*>(keys), count);
}

int64_t keys_above(bool wide, const void* keys, int64_t count, const void* bounds, bool each, uint16_t* numbers) {
  if (!wide) {
    const auto *own = static_cast<const int32_t*>(keys), *bound = static_cast<const int32_t*>(bounds);
    return each ? above_narrow<true>(own, count, bound, numbers) : above_narrow<false>(own, count, bound, numbers);
  }
  const auto *own = static_cast<const int64_t*>(keys), *bound = static_cast<const int64_t*>(bounds);
  return each ? above<true>(own, 0, count, bound, numbers, 0) : above<false>(own, 0, count, bound, numbers, 0);
}

void keep_greater(bool wide, const void* keys, int64_t count, int64_t position, bool last, void* best,
                  void* positions) {
  if (wide)
    keep(static_cast<const int64_t*>(keys), count, position, last, static_cast<int64_t*>(best),
         static_cast<int64_t*>(positions));
  else
    keep(static_cast<const int32_t*>(keys), count, static_cast<int32_t>(position), last, static_cast<int32_t*>(best),
         static_cast<int32_t*>(positions));
}

}  // namespace lathe::cpu::LATHE_ISA
