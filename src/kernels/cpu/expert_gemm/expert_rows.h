// SPDX-License-Identifier: Apache-2.0
// Which rows are multiplied by which expert's matrix, and what the kernels that do so share.
#pragma once

#include <algorithm>
#include <optional>

#include "base/divide.h"
#include "kernels/cpu/gemm/matrix_rows.h"
#include "kernels/cpu/index_walk.h"

namespace lathe::cpu {

// Rows by experts: those of expert e are numbers[first[e]] to numbers[first[e + 1]], in their own order; behind the
// last expert's come those that have none.
class ExpertRows {
 public:
  ExpertRows(int64_t rows, int64_t experts, std::byte* memory)
      : rows_(rows), experts_(experts), first_(reinterpret_cast<int32_t*>(memory)), numbers_(first_ + experts + 2) {}

  static int64_t bytes(int64_t rows, int64_t experts) {
    return (rows + experts + 2) * static_cast<int64_t>(sizeof(int32_t));
  }

  // `ids` broadcast to the output without its last dimension. Where `is_strict`, gives one that is no index; what was
  // written is of no use then.
  std::optional<IndexWalk::Outside> sort(const TensorArg& ids, const TensorArg& out, bool is_strict);

  int64_t count(int64_t expert) const { return first_[expert + 1] - first_[expert]; }
  const int32_t* of(int64_t expert) const { return numbers_ + first_[expert]; }

  // f(expert, first, last, worker) for panels [first, last) of each expert that has rows. Threads share them by what
  // they cost: their weights, about as much as some rows, and each row. `products`: of all rows, multiplications.
  template <class F>
  void share(int64_t panels, double products, ThreadPool& pool, const F& f) const {
    int64_t cost = 0;
    for (int64_t expert = 0; expert < experts_; ++expert) cost += cost_of(expert) * panels;
    const int64_t grain = products < gemm::kMinParallelFlops ? cost : 1;
    pool.parallel_for(cost, grain, [&](int64_t begin, int64_t end, int worker) {
      for (int64_t expert = 0, at = 0; expert < experts_ && at < end; ++expert) {
        const int64_t each = cost_of(expert);
        if (each == 0) continue;
        // Its panels that begin within the thread's part.
        const int64_t first = ceil_div(std::max<int64_t>(begin - at, 0), each);
        const int64_t last = std::min(ceil_div(end - at, each), panels);
        if (first < last) f(expert, first, last, worker);
        at += each * panels;
      }
    });
  }

  // Writes the rows that no expert has: the program's result for sums of 0, of N columns.
  void finish_others(gemm::MatrixRows source, const BoundEpilogue& epilogue, int64_t n) const;

 private:
  int64_t cost_of(int64_t expert) const {
    constexpr int64_t kRowsOfWeights = 4;
    return count(expert) == 0 ? 0 : count(expert) + kRowsOfWeights;
  }

  int64_t rows_, experts_;
  int32_t *first_, *numbers_;
};

// How many rows the output has.
int64_t rows_of(const TensorArg& out);

// Of B: its type, and K and N; N 0 = those that A and the output have.
struct ExpertSizes {
  DType b;
  int64_t k, n;
};
// Whether A, B and ids are what the kernel of that name takes, but for B's dimensions: A and ids broadcast to the rows
// of the output, whose columns are neighbours. Behind them are the program's operands.
Result<> check_expert_rows(std::string_view kernel, std::span<const TensorArg> inputs,
                           std::span<const TensorArg> outputs, const ExpertSizes& sizes, const Epilogue& epilogue);
// A with as many dimensions as the output has, 2 at least; K becomes contiguous in memory for `copied_floats(a)`.
TensorArg rows_of_a(const TensorArg& a, const TensorArg& out, float* copy, ThreadPool& pool);
int64_t copied_floats(const TensorArg& a);
// Repeats its rows where they have one for several of the output's.
void repeat_rows(TensorArg& a);

}  // namespace lathe::cpu
