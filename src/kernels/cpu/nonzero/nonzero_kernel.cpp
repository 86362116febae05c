// SPDX-License-Identifier: Apache-2.0
#include "base/divide.h"
#include "kernels/cpu/nonzero/nonzero.h"

#include <algorithm>
#include <utility>

#include "base/for_size.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/without_axis.h"

namespace lathe::cpu {
namespace {

using nonzero::kChunk;
constexpr int64_t kPiece = 256;
constexpr int64_t kMinTaskChunks = 8;

int64_t chunks_of(const TensorArg& x) { return ceil_div(x.volume(), kChunk); }

// Consecutive elements of one row, the last dimension.
struct Piece {
  int64_t offset, count;    // of its first element in memory; how many
  const int64_t* position;  // of its first element, in each dimension
};

// Calls body(piece) for the elements [begin, end) of x, which has a dimension.
template <class F>
void for_each_piece(const TensorArg& x, int64_t begin, int64_t end, F&& body) {
  const int last = x.rank - 1;
  int64_t position[kMaxRank], rest = begin, offset = 0;
  for (int d = last; d >= 0; --d) {
    position[d] = rest % x.dims[d];
    rest /= x.dims[d];
    offset += position[d] * x.strides[d];
  }
  while (begin < end) {
    const int64_t count = std::min({kPiece, end - begin, x.dims[last] - position[last]});
    body(Piece{offset, count, position});
    begin += count;
    position[last] += count;
    offset += count * x.strides[last];
    for (int d = last; d > 0 && position[d] == x.dims[d]; --d) {
      offset += x.strides[d - 1] - x.dims[d] * x.strides[d];
      position[d] = 0;
      ++position[d - 1];
    }
  }
}

// Calls f(elements as unsigned integers, mask): an element is not 0 when a bit of it under the mask is set. For floats
// the mask leaves out the sign, as -0 is 0, too.
template <class F>
void with_bits(const TensorArg& x, F&& f) {
  const auto call = [&](auto bits) {
    using T = decltype(bits);
    const auto all = static_cast<T>(~T{0});
    f(x.as<T>(), is_floating(x.dtype) ? static_cast<T>(all >> 1) : all);
  };
  for_size(size_of(x.dtype), call);
}

// A scalar as a list.
TensorArg with_dimension(TensorArg x) {
  if (x.rank > 0) return x;
  x.rank = 1;
  x.dims[0] = x.strides[0] = 1;
  return x;
}

class CountKernel final : public Kernel {
 public:
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    if (inputs.size() != 1 || outputs.size() != 1 || outputs[0].dtype != DType::i64 || outputs[0].rank != 1 ||
        outputs[0].dims[0] != inputs[0].volume() + 1 || !is_dense(outputs[0]))
      return fail(ErrorCode::invalid_argument, "nonzero: these are not a tensor and the counts of its chunks");
    return {};
  }

  void run(const Launch& launch) const override {
    const TensorArg x = with_dimension(launch.inputs[0]);
    const int64_t chunks = chunks_of(x), volume = x.volume();
    auto* const counts = launch.outputs[0].as<int64_t>();
    with_bits(x, [&](const auto* from, auto bits) {
      launch.pool.parallel_for(chunks, kMinTaskChunks, [&](int64_t begin, int64_t end, int) {
        for (int64_t chunk = begin; chunk < end; ++chunk) {
          int64_t count = 0;
          for_each_piece(x, chunk * kChunk, std::min(volume, (chunk + 1) * kChunk), [&](const Piece& piece) {
            const int64_t step = x.strides[x.rank - 1];
            int32_t own = 0;
            for (int64_t i = 0; i < piece.count; ++i) own += (from[piece.offset + i * step] & bits) != 0;
            count += own;
          });
          counts[chunk] = count;
        }
      });
    });
    int64_t sum = 0;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += std::exchange(counts[chunk], sum);
    counts[volume] = sum;
  }
};

class WriteKernel final : public Kernel {
 public:
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    if (inputs.size() != 2 || outputs.size() != 1 || inputs[1].dtype != DType::i64 || inputs[1].rank != 1 ||
        inputs[1].dims[0] != inputs[0].volume() + 1 || !is_dense(inputs[1]) || outputs[0].dtype != DType::i64 ||
        outputs[0].rank != 2 || outputs[0].dims[0] != inputs[0].rank)
      return fail(ErrorCode::invalid_argument,
                  "nonzero: these are not a tensor, the counts of its chunks and positions");
    return {};
  }

  void run(const Launch& launch) const override {
    const TensorArg x = with_dimension(launch.inputs[0]);
    const TensorArg& y = launch.outputs[0];
    if (y.volume() == 0) return;
    const int64_t volume = x.volume();
    const auto* counts = launch.inputs[1].as<int64_t>();
    with_bits(x, [&](const auto* from, auto bits) {
      launch.pool.parallel_for(chunks_of(x), kMinTaskChunks, [&](int64_t begin, int64_t end, int) {
        for (int64_t chunk = begin; chunk < end; ++chunk) {
          int64_t at = counts[chunk];
          for_each_piece(x, chunk * kChunk, std::min(volume, (chunk + 1) * kChunk), [&](const Piece& piece) {
            int64_t columns[kPiece];
            const int64_t found = find(from + piece.offset, x.strides[x.rank - 1], bits, piece, columns);
            write(y, at, std::min(found, y.dims[1] - at), piece, columns);
            at += found;
          });
        }
      });
    });
  }

 private:
  // Lists the columns that are not 0. Without a branch, as the processor could not predict it.
  template <class T>
  static int64_t find(const T* from, int64_t step, T bits, const Piece& piece, int64_t* columns) {
    int64_t found = 0;
    for (int64_t i = 0; i < piece.count; ++i) {
      columns[found] = i;
      found += (from[i * step] & bits) != 0;
    }
    return found;
  }
  static void write(const TensorArg& y, int64_t at, int64_t count, const Piece& piece, const int64_t* columns) {
    const auto last = static_cast<int>(y.dims[0]) - 1;
    for (int d = 0; d <= last; ++d) {
      int64_t* to = y.as<int64_t>() + d * y.strides[0] + at * y.strides[1];
      for (int64_t i = 0; i < count; ++i) to[i * y.strides[1]] = piece.position[d] + (d == last ? columns[i] : 0);
    }
  }
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_nonzero(const Record& record) {
  const auto params = decode_params<NonzeroParams>(record.params);
  if (record.program || !params) return refuse_params("nonzero");
  if (params->writes) return std::make_unique<WriteKernel>();
  return std::make_unique<CountKernel>();
}

}  // namespace lathe::cpu
