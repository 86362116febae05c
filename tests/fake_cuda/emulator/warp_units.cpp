// SPDX-License-Identifier: Apache-2.0
#include "warp_units.h"

#include <cstring>

#include "lib/types.cuh"

namespace emulator {
namespace {

constexpr int kM = 16, kN = 8;

float decode(f16 value) { return f16_to_float(value.bits); }
float decode(bf16 value) { return bf16_to_float(value.bits); }
int decode(int8 value) { return value; }
float decode(f8e4m3 value) { return e4m3_to_float(value.bits); }
float decode(f8e5m2 value) { return e5m2_to_float(value.bits); }
struct tf32 {
  uint32 bits;
};
float decode(tf32 value) { return bit_cast<float>(value.bits & 0xffffe000u); }

// What a lane gives: up to four registers of a, then up to four of b; of sparse products what the PTX manual calls
// sparsity metadata.
struct Fragments {
  unsigned a[4], b[4], e;
};
Fragments given_by(const WarpExchange& exchange, int lane) {
  Fragments given;
  std::memcpy(&given, exchange.values + static_cast<size_t>(lane) * kSlotBytes, sizeof given);
  return given;
}

// A register holds kPack elements that are neighbours along K; a lane's group (lane / 4) is its row of A and column of
// B, its place in the group (lane % 4) says which K. Registers of A alternate between row and row + 8, then go on along
// K.
template <class Element, int K, class Set>
void for_each_element(const unsigned* registers, int step, int lane, const Set& set) {
  constexpr int kPack = 4 / sizeof(Element);
  for (int half = 0; half < K / (4 * kPack); ++half)
    for (int i = 0; i < kPack; ++i) {
      Element element;
      std::memcpy(&element,
                  reinterpret_cast<const char*>(registers + half * step) + i * static_cast<int>(sizeof element),
                  sizeof element);
      set(lane / 4, half * 4 * kPack + lane % 4 * kPack + i, decode(element));
    }
}

template <class Element, class Sum, int K>
void read_a(const WarpExchange& exchange, Sum (&a)[kM][K]) {
  for (int lane = 0; lane < kWarpSize; ++lane)
    for (int below = 0; below < 2; ++below)
      for_each_element<Element, K>(given_by(exchange, lane).a + below, 2, lane,
                                   [&](int row, int k, Sum value) { a[row + below * 8][k] = value; });
}

template <class Sum, int K>
void multiply(const Sum (&a)[kM][K], const Sum (&b)[K][kN], WarpExchange& exchange) {
  Sum d[kM][kN] = {};
  for (int m = 0; m < kM; ++m)
    for (int k = 0; k < K; ++k)
      for (int n = 0; n < kN; ++n) d[m][n] += a[m][k] * b[k][n];
  static_assert(sizeof d <= sizeof exchange.result);
  std::memcpy(exchange.result, d, sizeof d);
}

template <class Element, class Sum, int K>
void read_b(const WarpExchange& exchange, Sum (&b)[K][kN]) {
  for (int lane = 0; lane < kWarpSize; ++lane)
    for_each_element<Element, K>(given_by(exchange, lane).b, 1, lane,
                                 [&](int column, int k, Sum value) { b[k][column] = value; });
}

// D[16][8] = A[16][K] * B[K][8].
template <class Element, class Sum, int K>
void multiply(WarpExchange& exchange) {
  Sum a[kM][K], b[K][kN];
  read_a<Element>(exchange, a);
  read_b<Element>(exchange, b);
  multiply(a, b, exchange);
}

// The four bits for four neighbours along K, the `group`th of a row. Of 16-bit elements two lanes of each four give
// them (sparsity selector 0), for a row and the row eight below; of 8-bit elements all do.
template <class Element>
unsigned kept_bits(const WarpExchange& exchange, int row, int group) {
  if (sizeof(Element) == 2) return given_by(exchange, row % 8 * 4 + group / 4).e >> (row / 8 * 16 + group % 4 * 4) & 15;
  return given_by(exchange, row % 8 * 4 + row / 8 + group / 8 * 2).e >> group % 8 * 4 & 15;
}

// The same of rows of A of which two of four neighbours are given.
template <class Element, class Sum, int K>
void multiply_sparse(WarpExchange& exchange) {
  Sum kept[kM][K / 2], a[kM][K] = {}, b[K][kN];
  read_a<Element>(exchange, kept);
  read_b<Element>(exchange, b);
  for (int row = 0; row < kM; ++row)
    for (int i = 0; i < K / 2; ++i) {
      const unsigned place = kept_bits<Element>(exchange, row, i / 2) >> i % 2 * 2 & 3;
      a[row][i / 2 * 4 + static_cast<int>(place)] = kept[row][i];
    }
  multiply(a, b, exchange);
}

struct Shape {
  const char* name;
  int a_registers, b_registers;
  Complete complete;
  bool of_integers = false;
};
constexpr Shape kShapes[] = {
    {"m16n8k16 f16", 4, 2, multiply<f16, float, 16>},
    {"m16n8k16 bf16", 4, 2, multiply<bf16, float, 16>},
    {"m16n8k8 f16", 2, 1, multiply<f16, float, 8>},
    {"m16n8k8 tf32", 4, 2, multiply<tf32, float, 8>},
    {"m16n8k32 s8", 4, 2, multiply<int8, int, 32>, true},
    {"m16n8k32 e4m3", 4, 2, multiply<f8e4m3, float, 32>},
    {"m16n8k32 e5m2", 4, 2, multiply<f8e5m2, float, 32>},
    {"sparse m16n8k32 f16", 4, 4, multiply_sparse<f16, float, 32>},
    {"sparse m16n8k32 bf16", 4, 4, multiply_sparse<bf16, float, 32>},
    {"sparse m16n8k64 s8", 4, 4, multiply_sparse<int8, int, 64>, true},
};

bool ascend(unsigned e) {
  for (int group = 0; group < 8; ++group, e >>= 4)
    if ((e & 3) >= (e >> 2 & 3)) return false;
  return true;
}

template <class Sum>
void accumulate(Sum* d, const WarpExchange& exchange, int lane) {
  const int row = lane / 4, column = lane % 4 * 2;
  for (int i = 0; i < 4; ++i) {
    Sum product;
    std::memcpy(&product, exchange.result + static_cast<size_t>((row + i / 2 * 8) * kN + column + i % 2) * sizeof(Sum),
                sizeof product);
    d[i] += product;
  }
}

constexpr size_t kRowBytes = 16;  // of an 8x8 matrix

void read_rows(WarpExchange& exchange) {
  for (size_t lane = 0; lane < kWarpSize; ++lane) {
    const void* row;
    std::memcpy(&row, exchange.values + lane * kSlotBytes, sizeof row);
    if (row) std::memcpy(exchange.result + lane * kRowBytes, row, kRowBytes);
  }
}

}  // namespace

void sparse_mma(ClusterRun& run, const char* shape, void* d, const unsigned* a, const unsigned* b, unsigned e) {
  const bool is_asked = std::strstr(shape, " s8") || run.self().thread % 4 < 2;
  if (is_asked && !ascend(e)) run.fail("a sparse product whose elements do not ascend along K");
  mma(run, shape, d, a, b, e);
}

void mma(ClusterRun& run, const char* shape, void* d, const unsigned* a, const unsigned* b, unsigned e) {
  const Shape* known = kShapes;
  while (std::strcmp(known->name, shape) != 0) ++known;
  Fragments fragments = {};
  fragments.e = e;
  std::memcpy(fragments.a, a, static_cast<size_t>(known->a_registers) * 4);
  std::memcpy(fragments.b, b, static_cast<size_t>(known->b_registers) * 4);
  const WarpExchange& exchange = run.collect(shape, &fragments, sizeof fragments, known->complete);
  const int lane = run.self().thread % kWarpSize;
  if (known->of_integers)
    accumulate(static_cast<int*>(d), exchange, lane);
  else
    accumulate(static_cast<float*>(d), exchange, lane);
}

namespace {

constexpr int kStepBytes = 32;  // of K, that an instruction multiplies

// An element in the layout that lib/warpgroup.cuh describes: chunks of 16 bytes are permuted by bits of their address.
template <class Element>
auto element(const PanelView& panel, int outer, int k) {
  constexpr int kSize = sizeof(Element);
  const int offset =
      panel.mn_major ? outer / 64 * panel.panel_bytes + outer % 64 * kSize + k * 128 : outer * 128 + k * kSize;
  const uintptr_t linear = reinterpret_cast<uintptr_t>(panel.start) + static_cast<uintptr_t>(offset);
  Element value;
  std::memcpy(&value, reinterpret_cast<const void*>(linear ^ (linear / 128 % 8 * 16)), sizeof value);
  return decode(value);
}

// All elements of a row that an instruction multiplies. Where they are neighbours, they lie in chunks of one
// permutation.
template <class Element, class Sum, size_t kDepth>
void read_row(const PanelView& panel, int outer, Sum (&row)[kDepth]) {
  const uintptr_t linear = reinterpret_cast<uintptr_t>(panel.start) + static_cast<uintptr_t>(outer * 128);
  if (panel.mn_major || linear % kStepBytes != 0) {
    for (int k = 0; k < static_cast<int>(kDepth); ++k) row[k] = element<Element>(panel, outer, k);
    return;
  }
  Element elements[kDepth];
  constexpr uintptr_t kHalf = kStepBytes / 2;
  for (uintptr_t half : {uintptr_t{0}, kHalf})
    std::memcpy(reinterpret_cast<char*>(elements) + half,
                reinterpret_cast<const void*>((linear + half) ^ (linear / 128 % 8 * 16)), kHalf);
  for (size_t k = 0; k < kDepth; ++k) row[k] = decode(elements[k]);
}

// Of the rows in registers, each of which is neighbours along K, 4 bytes: rows lane / 4 and, every other register,
// eight below; then the next 16 bytes of K.
template <class Element>
auto element(const Product& product, int half, int k) {
  constexpr int kPack = 4 / sizeof(Element);
  Element packed[kPack];
  std::memcpy(packed, &product.left[k / kPack % 4][k / kPack / 4 * 2 + half], sizeof packed);
  return decode(packed[k % kPack]);
}

template <class Element, class Sum>
void multiply_rows(const Product& product) {
  constexpr int kDepth = kStepBytes / sizeof(Element);
  const int warp = product.thread / kWarpSize % 4, lane = product.thread % kWarpSize;
  Sum a[2][kDepth], b[kDepth];
  for (int half = 0; half < 2; ++half)
    if (product.a.start)
      read_row<Element>(product.a, warp * 16 + lane / 4 + half * 8, a[half]);
    else
      for (int k = 0; k < kDepth; ++k) a[half][k] = element<Element>(product, half, k);
  for (int column = lane % 4 * 2; column < product.columns; column += column % 2 == 0 ? 1 : 7) {
    read_row<Element>(product.b, column, b);
    for (int half = 0; half < 2; ++half) {
      Sum sum = 0;
      for (int k = 0; k < kDepth; ++k) sum += a[half][k] * b[k];
      Sum& to = static_cast<Sum*>(product.sums)[column / 8 * 4 + half * 2 + column % 2];
      to = product.keep ? to + sum : sum;
    }
  }
}

struct Rows {
  const char* type;
  void (*multiply)(const Product&);
};
constexpr Rows kRows[] = {
    {"f16", multiply_rows<f16, float>}, {"bf16", multiply_rows<bf16, float>},   {"tf32", multiply_rows<tf32, float>},
    {"s8", multiply_rows<int8, int>},   {"e4m3", multiply_rows<f8e4m3, float>}, {"e5m2", multiply_rows<f8e5m2, float>},
};

}  // namespace

void wgmma(const Product& product) {
  const Rows* known = kRows;
  while (std::strcmp(known->type, product.type) != 0) ++known;
  known->multiply(product);
}

void ldmatrix(ClusterRun& run, unsigned* r, int count, bool transposed, const void* row) {
  const int lane = run.self().thread % kWarpSize;
  if (lane >= 8 * count)
    row = nullptr;
  else if (!run.is_shared(row, kRowBytes))
    run.fail("ldmatrix of a row outside of shared memory");
  else if (reinterpret_cast<uintptr_t>(row) % kRowBytes != 0)
    run.fail("ldmatrix of a misaligned row");
  const char* what = transposed ? "ldmatrix.trans" : "ldmatrix";
  const WarpExchange& exchange = run.collect(what, &row, sizeof row, read_rows);
  const auto element = [&](int matrix, int i, int j) {
    uint16_t value;
    std::memcpy(&value, exchange.result + static_cast<size_t>(8 * matrix + i) * kRowBytes + static_cast<size_t>(2 * j),
                sizeof value);
    return static_cast<unsigned>(value);
  };
  const int major = lane / 4, minor = lane % 4 * 2;
  for (int m = 0; m < count; ++m)
    r[m] = transposed ? element(m, minor, major) | element(m, minor + 1, major) << 16
                      : element(m, major, minor) | element(m, major, minor + 1) << 16;
}

}  // namespace emulator
