// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/for_size.h"
#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/without_axis.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kGrain = 16 << 10;  // elements, about 5 us

// A tensor's elements in row-major order, row by row.
class Elements {
 public:
  Elements(const TensorArg& tensor, int64_t first) : tensor_(tensor), last_(tensor.rank - 1) {
    for (int d = last_; d >= 0; --d) {
      index_[d] = first % tensor.dims[d];
      first /= tensor.dims[d];
      offset_ += index_[d] * tensor.strides[d];
    }
  }
  int64_t offset() const { return offset_; }
  int64_t step() const { return last_ < 0 ? 0 : tensor_.strides[last_]; }
  int64_t left() const { return last_ < 0 ? 1 : tensor_.dims[last_] - index_[last_]; }  // in the row

  // To the element `count` further, which is in the row or begins the next one.
  void advance(int64_t count) {
    for (int d = last_; d >= 0; --d, count = 1) {
      index_[d] += count;
      offset_ += count * tensor_.strides[d];
      if (index_[d] < tensor_.dims[d]) return;
      offset_ -= index_[d] * tensor_.strides[d];
      index_[d] = 0;
    }
  }

 private:
  const TensorArg& tensor_;
  int last_;
  int64_t index_[kMaxRank] = {};
  int64_t offset_ = 0;
};

template <class T>
void copy_elements(const TensorArg& target, const TensorArg& source, int64_t begin, int64_t end) {
  Elements to(target, begin), from(source, begin);
  while (begin < end) {
    const int64_t count = std::min({to.left(), from.left(), end - begin});
    T* written = target.as<T>() + to.offset();
    const T* read = source.as<T>() + from.offset();
    const int64_t to_step = to.step(), from_step = from.step();
    if (to_step == 1 && from_step == 1)
      std::copy_n(read, count, written);
    else
      for (int64_t i = 0; i < count; ++i) written[i * to_step] = read[i * from_step];
    to.advance(count);
    from.advance(count);
    begin += count;
  }
}

TensorArg as_row(TensorArg dense) {
  dense.dims[0] = dense.volume();
  dense.strides[0] = 1;
  dense.rank = 1;
  return dense;
}

}  // namespace

void copy_in_order(const TensorArg& target, const TensorArg& source, ThreadPool& pool) {
  if (target.volume() == 0) return;
  if (is_dense(target) && is_dense(source)) return copy_tensor(as_row(target), as_row(source), pool);
  pool.parallel_for(target.volume(), kGrain, [&](int64_t begin, int64_t end, int) {
    for_size(size_of(target.dtype), [&](auto zero) { copy_elements<decltype(zero)>(target, source, begin, end); });
  });
}

}  // namespace lathe::cpu
