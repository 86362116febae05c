// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cumulative/cumulative.h"
#include "kernels/cpu/narrow.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using cumulative::kSide;
using cumulative::Rows;
using cumulative::Scan;

enum class ScanOp { sum, product };
enum class ScanKind { inclusive, exclusive };  // exclusive: without the element itself

// What sums of T are kept in: integers wrap, as unsigned numbers of at least 32 bits do.
template <class T>
using Total =
    std::conditional_t<!std::is_integral_v<T>, double, std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;

template <class T>
Total<T> load(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<Total<T>>(value);
  else
    return widen(value);
}

template <class T>
T store(Total<T> value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(value);
  else
    return narrow<T>(value);
}

template <ScanOp kOp, ScanKind kKind, class T>
void scan(const Rows& rows, int64_t from_step, int64_t to_step) {
  Total<T> totals[kSide];
  for (int64_t r = 0; r < rows.count; ++r) totals[r] = kOp == ScanOp::product ? 1 : 0;
  for (int64_t i = 0; i < rows.extent; ++i) {
    const T* __restrict from = static_cast<const T*>(rows.from) + i * rows.from_along;
    T* __restrict to = static_cast<T*>(rows.to) + i * rows.to_along;
    for (int64_t r = 0; r < rows.count; ++r) {
      const Total<T> value = load(from[r * from_step]);
      const Total<T> next = kOp == ScanOp::product ? totals[r] * value : totals[r] + value;
      to[r * to_step] = store<T>(kKind == ScanKind::exclusive ? totals[r] : next);
      totals[r] = next;
    }
  }
}

template <ScanOp kOp, ScanKind kKind, class T>
void scan_one(const Rows& rows, int64_t from_along, int64_t to_along) {
  const T* from = static_cast<const T*>(rows.from);
  T* to = static_cast<T*>(rows.to);
  Total<T> total = kOp == ScanOp::product ? 1 : 0;
  for (int64_t i = 0; i < rows.extent; ++i) {
    const Total<T> value = load(from[i * from_along]);
    const Total<T> next = kOp == ScanOp::product ? total * value : total + value;
    to[i * to_along] = store<T>(kKind == ScanKind::exclusive ? total : next);
    total = next;
  }
}

template <ScanOp kOp, ScanKind kKind, class T>
void scan(const Rows& rows) {
  if (rows.count == 1 && rows.from_along == 1 && rows.to_along == 1) return scan_one<kOp, kKind, T>(rows, 1, 1);
  if (rows.count == 1) return scan_one<kOp, kKind, T>(rows, rows.from_along, rows.to_along);
  if (rows.from_step == 1 && rows.to_step == 1)
    scan<kOp, kKind, T>(rows, 1, 1);
  else
    scan<kOp, kKind, T>(rows, rows.from_step, rows.to_step);
}

template <ScanOp kOp, class T>
void scan_with(const Rows& rows, bool exclusive) {
  if (exclusive)
    scan<kOp, ScanKind::exclusive, T>(rows);
  else
    scan<kOp, ScanKind::inclusive, T>(rows);
}

template <class T>
void scan_as(Rows rows, const Scan& how) {
  if (how.reverse) {
    rows.from = static_cast<const T*>(rows.from) + (rows.extent - 1) * rows.from_along;
    rows.to = static_cast<T*>(rows.to) + (rows.extent - 1) * rows.to_along;
    rows.from_along = -rows.from_along;
    rows.to_along = -rows.to_along;
  }
  if (how.product)
    scan_with<ScanOp::product, T>(rows, how.exclusive);
  else
    scan_with<ScanOp::sum, T>(rows, how.exclusive);
}

}  // namespace

void scan_elements(DType type, const Rows& rows, const Scan& how) {
  dispatch(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, bool>) scan_as<T>(rows, how);
  });
}

}  // namespace lathe::cpu::LATHE_ISA
