// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_box.h"

#include <cstring>
#include <vector>

namespace lathe {
namespace {

struct Axis {
  int64_t extent, source, target;
};

// Drops axes of extent 1 and joins neighbours that both layouts walk in one stride.
std::vector<Axis> joined_axes(std::span<const int64_t> dims, std::span<const int64_t> source,
                              std::span<const int64_t> target) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    const Axis axis{dims[d], source[d], target[d]};
    if (!axes.empty() && axes.back().source == axis.source * axis.extent &&
        axes.back().target == axis.target * axis.extent)
      axes.back() = {axes.back().extent * axis.extent, axis.source, axis.target};
    else
      axes.push_back(axis);
  }
  return axes;
}

template <class T>
void copy_row(const Axis& axis, const char* source, char* target) {
  const T* from = reinterpret_cast<const T*>(source);
  T* to = reinterpret_cast<T*>(target);
  if (axis.source == 1 && axis.target == 1) {
    std::memcpy(target, source, static_cast<size_t>(axis.extent) * sizeof(T));
  } else if (axis.target == 1) {
    for (int64_t i = 0; i < axis.extent; ++i) to[i] = from[i * axis.source];
  } else {
    for (int64_t i = 0; i < axis.extent; ++i) to[i * axis.target] = from[i * axis.source];
  }
}

}  // namespace

void copy_box(size_t size, std::span<const int64_t> dims, const void* source, std::span<const int64_t> source_strides,
              void* target, std::span<const int64_t> target_strides) {
  for (int64_t dim : dims)
    if (dim == 0) return;
  std::vector<Axis> axes = joined_axes(dims, source_strides, target_strides);
  if (axes.empty()) axes.push_back({1, 1, 1});
  const Axis row = axes.back();
  axes.pop_back();
  void (*copy)(const Axis&, const char*, char*) = nullptr;
  for_size(size, [&](auto zero) { copy = copy_row<decltype(zero)>; });
  const int64_t bytes = static_cast<int64_t>(size);
  const char* from = static_cast<const char*>(source);
  char* to = static_cast<char*>(target);
  std::vector<int64_t> index(axes.size());
  while (true) {
    copy(row, from, to);
    size_t d = axes.size();
    while (d > 0) {
      const Axis& axis = axes[d - 1];
      from += axis.source * bytes;
      to += axis.target * bytes;
      if (++index[d - 1] < axis.extent) break;
      from -= axis.source * axis.extent * bytes;
      to -= axis.target * axis.extent * bytes;
      index[--d] = 0;
    }
    if (d == 0) return;
  }
}

void fill_elements(size_t size, const void* value, void* target, int64_t count) {
  const int64_t dims[] = {count}, still[] = {0}, dense[] = {1};
  copy_box(size, dims, value, still, target, dense);
}

Result<> eval_view(EvalContext& context) {
  const Tensor& input = context.input(0);
  Tensor& output = context.output(0);
  if (input.volume() != output.volume())
    return fail(ErrorCode::shape_mismatch, "{}: input of shape {} has {} elements, but the output of shape {} needs {}",
                op_info(context.attrs<Attributes>().kind()).name, to_string(to_shape(input.dims())), input.volume(),
                to_string(to_shape(output.dims())), output.volume());
  std::memcpy(output.mutable_data(), input.data(), input.bytes());
  return {};
}

}  // namespace lathe
