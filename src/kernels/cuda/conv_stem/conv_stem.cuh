// SPDX-License-Identifier: Apache-2.0
// Convolution of images of few channels, as networks begin with. A block has a tile of one image's output pixels: the
// pixels that their windows read come to shared memory once, and the matrix units' left operands straight from there,
// without a row for each window. The weights of the block's channels lie beside them, all of K.
#pragma once

#include "conv_stem/pixels.cuh"
#include "conv_stem/window_words.cuh"
#include "gemm/epilogue.cuh"
#include "gemm/mma_tile.cuh"

namespace conv_stem {

// A block's part of the output: kTileH x kTileW pixels, of which a warp has kWarpM, by kN channels.
template <class T, class Window_, int kChannels_, int kPitch, int kTileH, int kTileW, int kWarpM, int kN_>
struct Form {
  using Window = Window_;
  using Words = WindowWords<T, Window, kPitch, kTileH, kTileW>;
  using Panel = gemm::Panel<T, kN_, Words::kSteps * 8 * Words::kPerWord>;  // of the weights
  using Accumulator = typename MatrixSum<T>::Type;
  static constexpr int kChannels = kChannels_, kN = kN_, kHeight = kTileH, kWidth = kTileW;
  static constexpr int kThreads = kTileH * kTileW / kWarpM * 32;
  static constexpr int kRowTiles = kWarpM / 16, kColumnTiles = kN / 8;
  // A thread's sums of so many tiles of eight columns are neighbours, for the weights are in such an order.
  static constexpr int kGroupTiles = kColumnTiles < 4 ? kColumnTiles : 4, kNeighbours = 2 * kGroupTiles;
  static constexpr int kGroups = kColumnTiles / kGroupTiles;
  static_assert(kTileW % 16 == 0 && (kWarpM % kTileW == 0 || kTileW % kWarpM == 0), "rows of sums are of one row");
  static_assert(kColumnTiles % kGroupTiles == 0 && kN % 16 == 0, "columns are whole groups");

  LATHE_DEVICE_MEMBER static int first_row() { return warp() * kWarpM; }  // of the warp
  // The column of the product that is the block's channel.
  LATHE_DEVICE_MEMBER static int column_of(int channel) {
    const int in_group = channel % (8 * kGroupTiles), own = in_group % kNeighbours;
    return channel - in_group + own / 2 * 8 + in_group / kNeighbours * 2 + own % 2;
  }
};

// Where a block's tile lies in the output: what a sink asks of rows.
template <int kTileW>
struct TileRows {
  static constexpr bool kAll = true;  // those outside have the place of the last
  long image;
  int h, w, height, width;  // of the first pixel, and of the output

  LATHE_DEVICE_MEMBER bool has(long row) const {
    return h + static_cast<int>(row) / kTileW < height && w + static_cast<int>(row) % kTileW < width;
  }
  template <class Out, int N>
  LATHE_DEVICE_MEMBER bool coordinates(const Out&, long row, long (&c)[N]) const {
    const int at_h = h + static_cast<int>(row) / kTileW, at_w = w + static_cast<int>(row) % kTileW;
    c[0] = image;
    if constexpr (Out::kRank > 3) c[2] = at_h < height ? at_h : height - 1;
    c[Out::kRank - 1] = at_w < width ? at_w : width - 1;
    return has(row);
  }
};

// The tiles of the output: those of a row of pixels are neighbours.
template <class Form>
struct Tiles {
  unsigned across, down;
  long count;

  LATHE_DEVICE_MEMBER Tiles(const conv::Pixels& pixels, long images)
      : across(static_cast<unsigned>((pixels.extent[2] + Form::kWidth - 1) / Form::kWidth)),
        down(static_cast<unsigned>((pixels.extent[1] + Form::kHeight - 1) / Form::kHeight)),
        count(images * down * across) {}

  LATHE_DEVICE_MEMBER TileRows<Form::kWidth> rows_of(long tile, const conv::Pixels& pixels) const {
    auto rest = static_cast<unsigned>(tile);
    const int w = static_cast<int>(rest % across) * Form::kWidth;
    rest /= across;
    const int h = static_cast<int>(rest % down) * Form::kHeight;
    return {rest / down, h, w, static_cast<int>(pixels.extent[1]), static_cast<int>(pixels.extent[2])};
  }
};

// The first pixel that a tile's windows read.
template <class Window, class Rows>
LATHE_DEVICE conv::Corner corner_of(const Rows& rows) {
  return {rows.image, {0, rows.h * Window::stride(1) - Window::pad(1), rows.w * Window::stride(2) - Window::pad(2)}};
}

// The weights of the block's channels, of which the last may not exist.
template <class Form, class B>
LATHE_DEVICE void fetch_weights(const B& weights, long column, long channels, char* panel) {
  using Panel = typename Form::Panel;
  constexpr int kPerChunk = Panel::kColumns / Panel::kChunks;
  for (int i = thread_x(); i < Form::kN * Panel::kChunks; i += Form::kThreads) {
    const int channel = i / Panel::kChunks, chunk = i % Panel::kChunks;
    const bool exists = column + channel < channels;
    copy_async16(panel + Panel::chunk_offset(Form::column_of(channel), chunk),
                 weights.data + (exists ? column + channel : 0) * Panel::kColumns + chunk * kPerChunk, exists ? 16 : 0);
  }
  copy_async_commit();
}

// The columns' operands of a step.
template <class Form>
LATHE_DEVICE void load_columns(unsigned (&b)[Form::kColumnTiles][2], const char* panel, int step) {
  using Panel = typename Form::Panel;
  const int l = lane();
  panel += Panel::chunk_offset(l % 8 + l / 16 * 8, step * 2 + l / 8 % 2);
  LATHE_UNROLL
  for (int j = 0; j < Form::kColumnTiles; j += 2) {
    unsigned pair[4];
    ldmatrix_x4(pair, panel + j * 8 * Panel::kRowBytes);
    b[j][0] = pair[0], b[j][1] = pair[1], b[j + 1][0] = pair[2], b[j + 1][1] = pair[3];
  }
}

// The warp's sums over all of K.
template <class Form>
LATHE_DEVICE void multiply(const unsigned* image, const char* panel,
                           typename Form::Accumulator (&sums)[Form::kRowTiles][Form::kColumnTiles][4]) {
  using Words = typename Form::Words;
  constexpr int kBelow = Words::begin(8);
  image += Words::begin(Form::first_row() + lane() / 4);
  LATHE_UNROLL
  for (int step = 0; step < Words::kSteps; ++step) {
    unsigned b[Form::kColumnTiles][2];
    load_columns<Form>(b, panel, step);
    const unsigned* at[2];
    unsigned bits[2];
    LATHE_UNROLL
    for (int half = 0; half < 2; ++half) {
      at[half] = image + Words::own_offset(step * 8 + half * 4);
      bits[half] = Words::own_bits(step * 8 + half * 4);
    }
    LATHE_UNROLL
    for (int i = 0; i < Form::kRowTiles; ++i) {
      unsigned a[4];
      LATHE_UNROLL
      for (int e = 0; e < 4; ++e) a[e] = at[e / 2][Words::begin(i * 16) + e % 2 * kBelow] & bits[e / 2];
      LATHE_UNROLL
      for (int j = 0; j < Form::kColumnTiles; ++j) gemm::Instruction<typename Words::Element>::run(sums[i][j], a, b[j]);
    }
  }
}

// Neighbouring columns of two rows of the warp's tile, eight from each other, to the sink.
template <class Form, class Rows, class Sink, class Held>
LATHE_DEVICE void store_rows(const typename Form::Accumulator (*sums)[4], const Rows& rows, int row, long column,
                             int count, bool inside, const Sink& sink, const Held& held) {
  constexpr int kWidth = Form::kNeighbours;
  typename Form::Accumulator v[2][kWidth];
  float values[2][kWidth];
  long m[2];
  bool wanted[2];
  LATHE_UNROLL
  for (int k = 0; k < 2; ++k) {
    m[k] = row + k * 8;
    wanted[k] = inside && rows.has(m[k]);
    LATHE_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      v[k][i] = sums[i / 2][k * 2 + i % 2];
      values[k][i] = static_cast<float>(v[k][i]);
    }
  }
  if constexpr (Sink::kSeveral) {
    sink.put_rows(values, m, column, count, wanted, held);
  } else {
    LATHE_UNROLL
    for (int k = 0; k < 2; ++k)
      if (wanted[k]) sink.put(v[k], m[k], column, count);
  }
}

template <class Form, bool kWhole, class Rows, class Sink>
LATHE_DEVICE void store(const typename Form::Accumulator (&sums)[Form::kRowTiles][Form::kColumnTiles][4],
                        const Rows& rows, long column, long channels, const Sink& sink) {
  constexpr int kWidth = Form::kNeighbours;
  LATHE_UNROLL
  for (int group = 0; group < Form::kGroups; ++group) {
    long n = column + group * 8 * Form::kGroupTiles + lane() % 4 * kWidth;
    const bool inside = n < channels;
    if (!inside) n = (channels - 1) / kWidth * kWidth;
    const int count = kWhole ? kWidth : gemm::min_of(channels - n, kWidth);
    const auto held = sink.template columns<kWidth>(n, count);
    LATHE_UNROLL
    for (int i = 0; i < Form::kRowTiles; ++i)
      store_rows<Form>(sums[i] + group * Form::kGroupTiles, rows, Form::first_row() + i * 16 + lane() / 4, n, count,
                       inside, sink, held);
  }
}

// A block takes tiles in turns, of channels that it keeps the weights of. While it multiplies one, the pixels of the
// next are on their way, where registers have room for them beside the sums. kWhole: the channels are a multiple of
// what a thread has of neighbours. `sink_of` makes the sink for the rows.
template <class Form, bool kWhole, class X, class B, class MakeSink>
LATHE_DEVICE void run(const X& x, const B& weights, const conv::Pixels& pixels, long channels,
                      const MakeSink& sink_of) {
  using Words = typename Form::Words;
  using Window = typename Form::Window;
  using Loader = PixelLoader<Words, Form::kChannels, Form::kThreads, X>;
  constexpr bool kAhead = Loader::kRegisters + Form::kRowTiles * Form::kColumnTiles * 4 <= 112;
  char* const panel = reinterpret_cast<char*>(dynamic_shared());
  auto* const image = reinterpret_cast<typename Words::Element*>(panel + Form::Panel::kBytes);
  const auto columns = static_cast<int>((channels + Form::kN - 1) / Form::kN);
  const long column = block_x() % columns * Form::kN, step = grid_x() / columns;
  fetch_weights<Form>(weights, column, channels, panel);
  wait_for_results();
  if (has_few_blocks()) let_next_begin();
  const Tiles<Form> tiles(pixels, x.dim(0));
  Loader loader(x);
  long tile = block_x() / columns;
  loader.fetch(corner_of<Window>(tiles.rows_of(tile, pixels)), tile < tiles.count);
  copy_async_wait<0>();
  LATHE_NO_UNROLL
  for (; tile < tiles.count; tile += step) {
    barrier();  // the tile before has been multiplied
    loader.place(image);
    barrier();
    const auto next = corner_of<Window>(tiles.rows_of(tile + step, pixels));
    const bool has_next = tile + step < tiles.count;
    if constexpr (kAhead) loader.fetch(next, has_next);
    typename Form::Accumulator sums[Form::kRowTiles][Form::kColumnTiles][4];
    gemm::clear_sums(sums);
    multiply<Form>(reinterpret_cast<const unsigned*>(image), panel, sums);
    const auto rows = tiles.rows_of(tile, pixels);
    store<Form, kWhole>(sums, rows, column, channels, sink_of(rows));
    if constexpr (!kAhead) loader.fetch(next, has_next);
  }
}

}  // namespace conv_stem
