// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_copy.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/insertion_sort.h"
#include "ops/copy_box.h"

namespace lathe {
namespace {

// So many copies of rows would take the device longer than the way through the host.
constexpr int64_t kMaxCopies = 256;

// What two tensors' elements are, as few dimensions as possible: runs that follow each other in both, and how often.
class Runs {
 public:
  Runs(const TensorArg& from, const TensorArg& to) {
    if (is_packed(from.dtype)) {  // never strided: plan/validate.h
      bytes_ = static_cast<size_t>(lathe::bytes_of(from.dtype, from.volume()).value_or(0));
      return;
    }
    std::array<int, kMaxRank> order{};
    for (int d = 0; d < from.rank; ++d) order[static_cast<size_t>(d)] = d;
    insertion_sort(std::span(order).first(static_cast<size_t>(from.rank)), [&](int a, int b) {
      return to.strides[a] < to.strides[b] || (to.strides[a] == to.strides[b] && a > b);
    });
    int64_t run = 1;
    for (int i = 0; i < from.rank; ++i) {
      const int d = order[static_cast<size_t>(i)];
      const Dim dim{from.dims[d], from.strides[d], to.strides[d]};
      if (dim.size == 1) continue;
      if (rank_ == 0 && dim.from == run && dim.to == run) {
        run *= dim.size;
      } else if (rank_ > 0 && dim.from == last().from * last().size && dim.to == last().to * last().size) {
        last().size *= dim.size;
      } else {
        dims_[rank_++] = dim;
      }
    }
    const size_t element = size_of(from.dtype);
    bytes_ = static_cast<size_t>(run) * element;
    for (Dim& dim : std::span(dims_.data(), rank_)) {
      dim.from *= static_cast<int64_t>(element);
      dim.to *= static_cast<int64_t>(element);
    }
    const auto least = static_cast<int64_t>(bytes_);
    in_rows_ = rank_ > 0 && dims_[0].from >= least && dims_[0].to >= least;
  }

  int64_t num_copies() const {
    int64_t count = 1;
    for (size_t d = in_rows_ ? 1 : 0; d < rank_; ++d) count *= dims_[d].size;
    return count;
  }

  template <class Copy>
  Result<> each(const std::byte* from, std::byte* to, const Copy& copy) const {
    return walk(rank_, from, to, copy);
  }

 private:
  struct Dim {
    int64_t size, from, to;  // strides, in elements and then in bytes
  };
  Dim& last() { return dims_[rank_ - 1]; }

  template <class Copy>
  Result<> walk(size_t dims, const std::byte* from, std::byte* to, const Copy& copy) const {
    if (dims == 1 && in_rows_)
      return copy(RowsCopy{to, from, bytes_, static_cast<size_t>(dims_[0].size), static_cast<size_t>(dims_[0].to),
                           static_cast<size_t>(dims_[0].from)});
    if (dims == 0) return copy(RowsCopy{to, from, bytes_, 1, 0, 0});
    const Dim& dim = dims_[dims - 1];
    for (int64_t i = 0; i < dim.size; ++i) LATHE_TRY(walk(dims - 1, from + i * dim.from, to + i * dim.to, copy));
    return {};
  }

  std::array<Dim, kMaxRank> dims_{};  // innermost first
  size_t rank_ = 0;
  size_t bytes_ = 0;  // of a run
  bool in_rows_ = false;
};

void copy_elements(const TensorArg& from, const std::byte* source, const TensorArg& to, std::byte* target) {
  const auto rank = static_cast<size_t>(from.rank);
  copy_box(size_of(from.dtype), {from.dims, rank}, source, {from.strides, rank}, target, {to.strides, rank});
}

// Through copies of both on the host, for what lies between the elements of the result stays.
Result<> copy_through_host(const TensorArg& from, const TensorArg& to, Device& device, Queue& queue) {
  const Line read = line_of(from), written = line_of(to);
  const size_t size = size_of(from.dtype);
  LATHE_ASSIGN(Tensor source, Tensor::allocate(from.dtype, {read.elements.dims[0]}));
  LATHE_ASSIGN(Tensor target, Tensor::allocate(from.dtype, {written.elements.dims[0]}));
  LATHE_TRY(device.download(source.mutable_data(), read.elements.data, source.bytes(), queue));
  LATHE_TRY(device.download(target.mutable_data(), written.elements.data, target.bytes(), queue));
  copy_elements(from, static_cast<const std::byte*>(source.data()) + static_cast<size_t>(read.first) * size, to,
                static_cast<std::byte*>(target.mutable_data()) + static_cast<size_t>(written.first) * size);
  return device.upload(written.elements.data, target.data(), target.bytes(), queue);
}

}  // namespace

Line line_of(const TensorArg& tensor) {
  Line line{tensor, 0};
  int64_t last = 0;
  for (int d = 0; d < tensor.rank; ++d) {
    const int64_t reach = (tensor.dims[d] - 1) * tensor.strides[d];
    (reach < 0 ? line.first : last) += std::abs(reach);
  }
  line.elements.rank = 1;
  line.elements.dims[0] = tensor.volume() == 0 ? 0 : line.first + last + 1;
  line.elements.data = static_cast<std::byte*>(tensor.data) - line.first * static_cast<int64_t>(size_of(tensor.dtype));
  return line;
}

bool device_copies(const TensorArg& from, const TensorArg& to) {
  return from.volume() == 0 || Runs(from, to).num_copies() <= kMaxCopies;
}

Result<> copy_tensor(const TensorArg& from, const TensorArg& to, Device& device, Queue& queue) {
  const bool is_there = from.data == to.data && std::equal(from.strides, from.strides + from.rank, to.strides);
  if (from.volume() == 0 || is_there) return {};
  const auto* source = static_cast<const std::byte*>(from.data);
  auto* target = static_cast<std::byte*>(to.data);
  const Runs runs(from, to);
  const int64_t copies = runs.num_copies();
  if (device.is_host() && copies > 1) {
    copy_elements(from, source, to, target);
    return {};
  }
  if (copies > kMaxCopies) return copy_through_host(from, to, device, queue);
  return runs.each(source, target, [&](const RowsCopy& rows) { return device.copy(rows, queue); });
}

}  // namespace lathe
