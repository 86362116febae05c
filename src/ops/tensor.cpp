// SPDX-License-Identifier: Apache-2.0
#include "ops/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/encoding.h"
#include "base/memory_tally.h"

namespace lathe {

std::optional<int64_t> checked_volume(std::span<const int64_t> dims) {
  int64_t product = 1;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0)
      empty = true;
    else if (__builtin_mul_overflow(product, dim, &product))
      return std::nullopt;
  }
  return empty ? 0 : product;
}

Dims row_major_strides(std::span<const int64_t> dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

namespace {

// What is as large has pages of its own, which the system gets back with it: an allocator would keep them among others,
// and a build has its weights in one form after the other.
constexpr size_t kOwnPages = 256 << 10;

std::shared_ptr<void> allocate_bytes(size_t bytes) {
  if (bytes < kOwnPages) {
    void* data = std::aligned_alloc(64, bytes);
    return data ? std::shared_ptr<void>(data, std::free) : nullptr;
  }
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  host_tally().add(bytes);
  return std::shared_ptr<void>(data, [bytes](void* pages) {
    ::munmap(pages, bytes);
    host_tally().remove(bytes);
  });
}

}  // namespace

Result<Tensor> Tensor::allocate(DType dtype, Dims dims) {
  const std::optional<int64_t> count = checked_volume(dims), bytes = bytes_of(dtype, count.value_or(-1));
  if (!bytes || *bytes > INT64_MAX - 128)
    return fail(ErrorCode::shape_mismatch, "tensor of type {} and dims {} has no valid size", name_of(dtype),
                to_string(to_shape(dims)));
  const size_t padded = (static_cast<size_t>(*bytes) + 127) / 64 * 64;
  Tensor tensor;
  tensor.owner_ = allocate_bytes(padded);
  if (!tensor.owner_) return fail(ErrorCode::out_of_memory, "cannot allocate {} bytes for a tensor", *bytes);
  tensor.dtype_ = dtype;
  tensor.dims_ = std::move(dims);
  tensor.data_ = tensor.owner_.get();
  tensor.clear_end();
  return tensor;
}

Tensor Tensor::view(DType dtype, Dims dims, const void* data, std::shared_ptr<const void> owner) {
  static constexpr int64_t kEmpty = 0;
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.dims_ = std::move(dims);
  tensor.data_ = data ? data : &kEmpty;
  tensor.owner_ = std::move(owner);
  return tensor;
}

template <class T>
Tensor Tensor::from(Dims dims, std::span<const T> values) {
  Result<Tensor> tensor = allocate(dtype_of<T>(), std::move(dims));
  if (!tensor) throw std::bad_alloc();
  std::copy(values.begin(), values.end(), static_cast<T*>(tensor->mutable_data()));
  return *std::move(tensor);
}

#define LATHE_INSTANTIATE(T) template Tensor Tensor::from<T>(Dims, std::span<const T>);
LATHE_INSTANTIATE(float)
LATHE_INSTANTIATE(double)
LATHE_INSTANTIATE(Half)
LATHE_INSTANTIATE(BFloat16)
LATHE_INSTANTIATE(int8_t)
LATHE_INSTANTIATE(int16_t)
LATHE_INSTANTIATE(int32_t)
LATHE_INSTANTIATE(int64_t)
LATHE_INSTANTIATE(uint8_t)
LATHE_INSTANTIATE(uint16_t)
LATHE_INSTANTIATE(uint32_t)
LATHE_INSTANTIATE(uint64_t)
LATHE_INSTANTIATE(bool)
#undef LATHE_INSTANTIATE

int64_t Tensor::volume() const {
  int64_t product = 1;
  for (int64_t dim : dims_) product *= dim;
  return product;
}

Tensor Tensor::reshaped(Dims dims) const {
  Tensor tensor = *this;
  tensor.dims_ = std::move(dims);
  return tensor;
}

void Tensor::clear_end() {
  if (is_packed(dtype_) && bytes() > 0) mutable_as<std::byte>()[bytes() - 1] = {};
}

Result<Tensor> Tensor::with_clear_end() const {
  const int64_t used = volume() * bits_of(dtype_) % 8;
  if (!is_packed(dtype_) || used == 0 || std::to_integer<int>(raw().back()) >> used == 0) return *this;
  LATHE_ASSIGN(Tensor copy, allocate(dtype_, dims_));
  std::memcpy(copy.mutable_data(), data_, bytes());
  copy.mutable_as<uint8_t>()[bytes() - 1] &= static_cast<uint8_t>((1 << used) - 1);
  return copy;
}

int64_t Tensor::at(int64_t i) const {
  if (is_storage_only(dtype_)) return static_cast<int64_t>(at_double(i));
  return dispatch(dtype_, [&](auto zero) -> int64_t {
    using T = decltype(zero);
    if constexpr (std::is_class_v<T>)
      return static_cast<int64_t>(static_cast<float>(as<T>()[i]));
    else
      return static_cast<int64_t>(as<T>()[i]);
  });
}

double Tensor::at_double(int64_t i) const {
  if (is_storage_only(dtype_)) return decode(dtype_, load_code(dtype_, data_, i));
  return dispatch(dtype_, [&](auto zero) -> double {
    using T = decltype(zero);
    if constexpr (std::is_class_v<T>)
      return static_cast<float>(as<T>()[i]);
    else
      return static_cast<double>(as<T>()[i]);
  });
}

bool identical(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.dims() == b.dims() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

}  // namespace lathe
