// SPDX-License-Identifier: Apache-2.0
// Tensors in host memory, dense and row-major: constants, and the operands of the plain evaluation. Elements of less
// than a byte lie packed; bits behind the last one are 0.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/dtype.h"
#include "base/result.h"
#include "shape/expr.h"

namespace lathe {

// The storage is shared and immutable once the tensor is shared: copying a Tensor copies a handle.
class Tensor {
 public:
  Tensor() = default;
  // Uninitialised, 64-byte aligned. Fails on overflow, negative dims or lack of memory.
  static Result<Tensor> allocate(DType dtype, Dims dims);
  // Points into memory kept alive by `owner` (a mapped file, say); data must hold bytes_of(dtype, volume) bytes.
  static Tensor view(DType dtype, Dims dims, const void* data, std::shared_ptr<const void> owner);
  // From a list, for tests and importers: Tensor::of<int64_t>({3}, {1, 2, 3}). Throws bad_alloc only.
  template <class T>
  static Tensor of(Dims dims, std::initializer_list<T> values) {
    return from(std::move(dims), std::span<const T>(values.begin(), values.size()));
  }
  template <class T>
  static Tensor from(Dims dims, std::span<const T> values);

  bool defined() const { return data_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t volume() const;
  size_t bytes() const { return static_cast<size_t>(bytes_of(dtype_, volume()).value_or(0)); }

  const void* data() const { return data_; }
  void* mutable_data() { return const_cast<void*>(data_); }  // only while this is the sole handle
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data_);
  }
  template <class T>
  T* mutable_as() {
    return static_cast<T*>(mutable_data());
  }
  const std::shared_ptr<const void>& owner() const { return owner_; }  // of the memory
  std::span<const std::byte> raw() const { return {static_cast<const std::byte*>(data_), bytes()}; }

  Tensor reshaped(Dims dims) const;       // same volume, same storage
  void clear_end();                       // sets bits behind the last element to 0, before elements are written
  Result<Tensor> with_clear_end() const;  // this tensor, or a copy where such bits are set

  // Element `i` in row-major order, converted; for integer tensors at() is exact. Not for loops over large tensors.
  int64_t at(int64_t i) const;
  double at_double(int64_t i) const;

 private:
  DType dtype_ = DType::f32;
  Dims dims_;
  const void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

// Same type, dims and bits.
bool identical(const Tensor& a, const Tensor& b);

// nullopt on overflow or a negative dim.
std::optional<int64_t> checked_volume(std::span<const int64_t> dims);
Dims row_major_strides(std::span<const int64_t> dims);

}  // namespace lathe
