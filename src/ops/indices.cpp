// SPDX-License-Identifier: Apache-2.0
#include "ops/indices.h"

#include <cstring>

#include "ops/copy_box.h"
#include "ops/rules.h"

namespace lathe {
namespace {

// Makes an index non-negative; false when it lies outside the axis.
bool wrap_index(int64_t& index, int64_t extent) {
  if (index < 0) index += extent;
  return index >= 0 && index < extent;
}

tl::unexpected<Error> outside(std::string_view op, int64_t index, int64_t axis, int64_t extent) {
  if (axis < 0)
    return fail(ErrorCode::execution_failed, "{}: index {} is outside [-{}, {})", op, index, extent, extent);
  return fail(ErrorCode::execution_failed, "{}: index {} is outside [-{}, {}) of axis {}", op, index, extent, extent,
              axis);
}

template <class T>
T combine(ScatterReduction reduction, T a, T b) {
  using Wide = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, uint64_t, T>;  // wraps
  switch (reduction) {
    case ScatterReduction::add:
      return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
    case ScatterReduction::mul:
      return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    case ScatterReduction::max:
      return b > a || b != b ? b : a;  // NaN wins, as in NumPy
    case ScatterReduction::min:
      return b < a || b != b ? b : a;
    case ScatterReduction::none:
      break;
  }
  return b;
}

// U is the stored type, A the type that accumulates.
template <class U, class A>
void reduce(ScatterReduction reduction, const U* updates, const Ints& offsets, int64_t run, A* target) {
  for (int64_t offset : offsets)
    for (int64_t i = 0; i < run; ++i, ++updates)
      target[offset + i] = combine<A>(reduction, target[offset + i], static_cast<A>(*updates));
}

}  // namespace

Result<> check_reach(InferContext& context, int64_t axis, std::string_view op) {
  const Shape data = context.shape(0), indices = context.shape(1);
  for (size_t d = 0; d < indices.size(); ++d)
    if (d != static_cast<size_t>(axis) && !context.assume(Relation::at_most, indices[d], data[d]))
      return fail(ErrorCode::shape_mismatch, "{}: indices {} reach beyond data {} in dimension {}", op,
                  to_string(indices), to_string(data), d);
  return {};
}

Result<Ints> read_indices(const Tensor& indices, int64_t extent, std::string_view op) {
  Ints values = to_ints(indices);
  for (int64_t& value : values) {
    const int64_t given = value;
    if (!wrap_index(value, extent)) return outside(op, given, -1, extent);
  }
  return values;
}

Result<Ints> offsets_along_axis(const Tensor& data, const Tensor& indices, int64_t axis, std::string_view op) {
  const size_t a = static_cast<size_t>(axis);
  Dims strides = row_major_strides(data.dims());
  const int64_t stride = std::exchange(strides[a], 0);
  for (size_t d = 0; d < strides.size(); ++d)
    if (d != a && indices.dims()[d] > data.dims()[d])
      return fail(ErrorCode::shape_mismatch, "{}: indices of shape {} exceed data of shape {} on axis {}", op,
                  to_string(to_shape(indices.dims())), to_string(to_shape(data.dims())), d);
  LATHE_ASSIGN(Ints offsets, read_indices(indices, data.dims()[a], op));
  Walk walk(indices.dims(), {strides});
  for (int64_t& offset : offsets) {
    offset = offset * stride + walk.offset(0);
    walk.next();
  }
  return offsets;
}

Result<TupleOffsets> offsets_of_tuples(const Tensor& data, const Tensor& indices, int64_t batch_dims,
                                       std::string_view op) {
  const size_t depth = static_cast<size_t>(indices.dims().back()), batch = static_cast<size_t>(batch_dims);
  const Dims strides = row_major_strides(data.dims());
  const Ints values = to_ints(indices);
  TupleOffsets out;
  int64_t tuples = 1, batches = 1;
  for (size_t d = 0; d + 1 < indices.dims().size(); ++d) (d < batch ? batches : tuples) *= indices.dims()[d];
  for (size_t d = batch + depth; d < strides.size(); ++d) out.run *= data.dims()[d];
  const int64_t batch_stride = batch == 0 ? 0 : strides[batch - 1];
  out.offsets.reserve(static_cast<size_t>(batches * tuples));
  const int64_t* value = values.data();
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t t = 0; t < tuples; ++t) {
      int64_t offset = b * batch_stride;
      for (size_t d = 0; d < depth; ++d) {
        int64_t index = *value++;
        const int64_t extent = data.dims()[batch + d];
        if (!wrap_index(index, extent)) return outside(op, value[-1], static_cast<int64_t>(batch + d), extent);
        offset += index * strides[batch + d];
      }
      out.offsets.push_back(offset);
    }
  return out;
}

void scatter(ScatterReduction reduction, const Tensor& updates, const Ints& offsets, int64_t run, Tensor& output) {
  if (reduction == ScatterReduction::none) {
    for_size(size_of(output.dtype()), [&](auto zero) {
      using T = decltype(zero);
      const T* from = updates.as<T>();
      T* to = output.mutable_as<T>();
      for (int64_t offset : offsets) {
        std::memcpy(to + offset, from, static_cast<size_t>(run) * sizeof(T));
        from += run;
      }
    });
    return;
  }
  dispatch(output.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* target = output.mutable_as<T>();
    if constexpr (std::is_class_v<T>) {
      std::vector<float> sums(static_cast<size_t>(output.volume()));
      for (size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(target[i]);
      reduce<T, float>(reduction, updates.as<T>(), offsets, run, sums.data());
      for (size_t i = 0; i < sums.size(); ++i) target[i] = T(sums[i]);
    } else {
      reduce<T, T>(reduction, updates.as<T>(), offsets, run, target);
    }
  });
}

}  // namespace lathe
