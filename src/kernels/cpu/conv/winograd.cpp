// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/winograd.h"

#include <algorithm>
#include <array>

#include "base/divide.h"
#include "device/taken_constants.h"
#include "kernels/cpu/conv/pixel_rows.h"

namespace lathe::cpu::conv {
namespace {

using gemm::Panels;

constexpr int kMaxSide = 6;

// Filter transforms G, (m + 2) x 3, for the same points as the data's.
constexpr double kFilter2[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
constexpr double kFilter4[6][3] = {{1.0 / 4, 0, 0},
                                   {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                   {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                   {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                   {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                   {0, 0, 1}};

// G w G^T of one 3x3 filter.
void transform_filter(int side, const double (*g)[3], const double (&filter)[9], double* out) {
  double half[kMaxSide][3];
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < 3; ++j) half[i][j] = g[i][0] * filter[j] + g[i][1] * filter[3 + j] + g[i][2] * filter[6 + j];
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j)
      out[i * side + j] = half[i][0] * g[j][0] + half[i][1] * g[j][1] + half[i][2] * g[j][2];
}

// Distance between the matrices of two products. Not a multiple of 4096 bytes: all of them would share an L1 set.
int64_t product_stride(int64_t floats) {
  const int64_t stride = round_up(floats, 16);
  return stride % 1024 == 0 ? stride + 16 : stride;
}

class Winograd final : public Kernel, public TakesConstants {
 public:
  Winograd(const ConvShape& shape, const ConvConfig& config, Epilogue epilogue)
      : shape_(shape),
        config_(config),
        epilogue_(std::move(epilogue)),
        outputs_(winograd_outputs(config.algorithm)),
        products_((outputs_ + 2) * (outputs_ + 2)),
        panels_{shape.in_channels, shape.out_channels, config.blocking.width},
        row_stride_(round_up(shape.in_channels, 16)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    return check_conv({shape_, config_, false}, epilogue_, inputs, outputs);
  }
  Result<> take_constants(std::span<const TensorArg> inputs, Device& device) override;
  size_t taken_bytes() const override { return static_cast<size_t>(panels_.floats() * products_) * sizeof(float); }
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    const int64_t block = tile_block(tile_count(geometry_of(shape_, inputs[0], outputs[0])));
    return static_cast<size_t>(scratch_floats(block) * threads) * sizeof(float);
  }
  void run(const Launch& launch) const override;

 private:
  struct Scratch {
    float* inputs;    // [product][tile][channel]
    float* products;  // [product][tile][column of the panel]
    float* finished;  // [pixel of a tile][column]
  };
  int64_t tile_count(const Geometry& g) const {
    return g.batch * ceil_div(g.out[1], outputs_) * ceil_div(g.out[2], outputs_);
  }
  int64_t tile_block(int64_t tiles) const {
    const int64_t wanted = config_.blocking.row_block ? config_.blocking.row_block : 48;
    return std::min(wanted, std::max<int64_t>(tiles, 1));
  }
  int64_t input_stride(int64_t block) const { return product_stride(block * row_stride_); }
  int64_t output_stride(int64_t block) const { return product_stride(block * panels_.width); }
  int64_t scratch_floats(int64_t block) const {
    return products_ * (input_stride(block) + output_stride(block)) + outputs_ * outputs_ * kMaxTileColumns;
  }
  void run_block(const Launch& launch, const Geometry& g, const BoundEpilogue& epilogue, int64_t first, int64_t last,
                 int64_t first_panel, int64_t last_panel, const Scratch& scratch, int64_t block) const;
  void multiply(const float* weights, int64_t panel, int64_t tiles, int64_t block, const float* upcoming,
                const Scratch& scratch) const;
  void finish(const Launch& launch, const Geometry& g, const BoundEpilogue& epilogue, int64_t tile, int64_t column,
              int columns, const float* finished) const;

  ConvShape shape_;
  ConvConfig config_;
  Epilogue epilogue_;
  int outputs_;
  int64_t products_;
  Panels panels_;
  int64_t row_stride_;
  DeviceMemory weights_;  // transformed
};

Result<> Winograd::take_constants(std::span<const TensorArg> inputs, Device& device) {
  if (inputs.size() < 2 || !inputs[1].data || inputs[1].dtype != DType::f32 ||
      !are_weights(shape_, inputs[1], panels_.k))
    return fail(ErrorCode::plan_malformed, "conv step asks for Winograd, and its weights are no constant of its shape");
  LATHE_ASSIGN(weights_, device.allocate(taken_bytes()));
  auto* const transformed = reinterpret_cast<float*>(weights_.data());
  const TensorArg& w = inputs[1];
  const double(*g)[3] = outputs_ == 4 ? kFilter4 : kFilter2;
  std::fill(transformed + panels_.offset(panels_.count() - 1) * products_, transformed + panels_.floats() * products_,
            0.0f);  // columns behind the last channel
  for (int64_t panel = 0; panel < panels_.count(); ++panel)
    for (int64_t c = 0; c < panels_.k; ++c)
      for (int column = 0; column < panels_.columns(panel); ++column) {
        const float* from = w.as<float>() + (panel * panels_.width + column) * w.strides[0] + c * w.strides[1];
        double filter[9], products[kMaxSide * kMaxSide];
        for (int t = 0; t < 9; ++t) filter[t] = from[t / 3 * w.strides[2] + t % 3 * w.strides[3]];
        transform_filter(outputs_ + 2, g, filter, products);
        float* to = transformed + panels_.offset(panel) * products_ + c * panels_.stride(panel) + column;
        for (int64_t e = 0; e < products_; ++e)
          to[e * panels_.k * panels_.stride(panel)] = static_cast<float>(products[e]);
      }
  return {};
}

// Where a tile lies.
struct TilePlace {
  int64_t n, row, column;  // of its first output pixel
};
TilePlace place(const Geometry& g, int outputs, int64_t tile) {
  const int64_t across = ceil_div(g.out[2], outputs), down = ceil_div(g.out[1], outputs);
  return {tile / (across * down), tile / across % down * outputs, tile % across * outputs};
}

void Winograd::run(const Launch& launch) const {
  const TensorArg& out = launch.outputs[0];
  if (out.volume() == 0) return;
  const Geometry g = geometry_of(shape_, launch.inputs[0], out);
  const BoundEpilogue epilogue = bind_epilogue(epilogue_, launch.inputs.subspan(2), out, 1);
  const int64_t tiles = tile_count(g), block = tile_block(tiles);
  const double flops = 2.0 * static_cast<double>(tiles * products_) * static_cast<double>(panels_.k * panels_.n);
  const bool columns = config_.blocking.split_columns;
  const int64_t items = columns ? panels_.count() : tiles;
  launch.pool.parallel_for(
      items, flops < 2 * gemm::kMinParallelFlops ? items : 1, [&](int64_t begin, int64_t end, int w) {
        Scratch scratch;
        scratch.inputs = reinterpret_cast<float*>(launch.workspace) + w * scratch_floats(block);
        scratch.products = scratch.inputs + products_ * input_stride(block);
        scratch.finished = scratch.products + products_ * output_stride(block);
        const int64_t first = columns ? 0 : begin, last = columns ? tiles : end;
        // Blocks of equal size: a short last one would read all weights for little work.
        const int64_t blocks = (last - first + block - 1) / block;
        for (int64_t i = 0; i < blocks; ++i)
          run_block(launch, g, epilogue, first + (last - first) * i / blocks, first + (last - first) * (i + 1) / blocks,
                    columns ? begin : 0, columns ? end : panels_.count(), scratch, block);
      });
}

void Winograd::run_block(const Launch& launch, const Geometry& g, const BoundEpilogue& epilogue, int64_t first,
                         int64_t last, int64_t first_panel, int64_t last_panel, const Scratch& scratch,
                         int64_t block) const {
  static const auto transform_input = LATHE_ISA_SELECT(winograd_input);
  static const auto transform_output = LATHE_ISA_SELECT(winograd_output);
  for (int64_t t = first; t < last; ++t) {
    const TilePlace at = place(g, outputs_, t);
    const int64_t row = at.row - g.shape.pad[1], column = at.column - g.shape.pad[2];
    const float* x =
        launch.inputs[0].as<float>() + at.n * g.batch_stride + row * g.in_stride[1] + column * g.in_stride[2];
    transform_input(outputs_, {x, g.in_stride[1], g.in_stride[2], row, column, g.in[1], g.in[2], panels_.k,
                               scratch.inputs + (t - first) * row_stride_, input_stride(block)});
  }
  const auto* weights = reinterpret_cast<const float*>(weights_.data());
  for (int64_t panel = first_panel; panel < last_panel; ++panel) {
    const float* own = weights + panels_.offset(panel) * products_;
    const float* end = own + panels_.k * panels_.stride(panel) * products_;
    multiply(own, panel, last - first, block, panel + 1 < last_panel ? end : nullptr, scratch);
    const int stride = panels_.stride(panel);
    for (int64_t t = first; t < last; ++t) {
      transform_output(outputs_, {scratch.products + (t - first) * panels_.width, output_stride(block), stride,
                                  scratch.finished, kMaxTileColumns});
      finish(launch, g, epilogue, t, panel * panels_.width, panels_.columns(panel), scratch.finished);
    }
  }
}

// The products of one panel: [tiles, C] x [C, width] for each.
void Winograd::multiply(const float* weights, int64_t panel, int64_t tiles, int64_t block, const float* upcoming,
                        const Scratch& scratch) const {
  static const gemm::TileTable& table = LATHE_ISA_SELECT(tile_table)();
  const int stride = panels_.stride(panel), step = table.vectors * table.lanes;
  const gemm::Tap tap{0, 0, static_cast<int32_t>(panels_.k), 0};
  gemm::Tile tile{};
  tile.taps = &tap;
  tile.tap_count = 1;
  tile.b_stride = stride;
  tile.partial_stride = panels_.width;
  tile.store_partial = true;
  const float* a_rows[kMaxTileRows];
  tile.a_rows = a_rows;
  const int64_t per_product = panels_.k * stride;
  for (int64_t e = 0; e < products_; ++e) {
    const float* next = e + 1 < products_ ? weights + (e + 1) * per_product : upcoming;
    for (int c = 0; c < stride; c += step) {
      const int vectors = std::min(step, stride - c) / table.lanes;
      const int most = table.max_rows[vectors - 1];
      const int64_t count = ceil_div(tiles, most);
      tile.columns = vectors * table.lanes;
      tile.b = weights + e * per_product + c;
      const int64_t steps = std::max<int64_t>(panels_.k / 4, 1), lines = per_product / 16;
      const bool fetches = next && c == 0;
      tile.prefetch_lines = fetches ? static_cast<int>(std::min<int64_t>((lines / count + steps) / steps, 8)) : 0;
      tile.prefetch = reinterpret_cast<const char*>(next);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t begin = tiles * i / count;
        const int rows = static_cast<int>(tiles * (i + 1) / count - begin);
        const float* inputs = scratch.inputs + e * input_stride(block) + begin * row_stride_;
        for (int r = 0; r < rows; ++r) a_rows[r] = inputs + r * row_stride_;
        tile.partial = scratch.products + e * output_stride(block) + begin * panels_.width + c;
        table.functions[vectors - 1][rows - 1](tile);
        if (fetches) tile.prefetch += tile.prefetch_lines * steps * 64;
      }
    }
  }
}

// The epilogue of one tile's pixels, output row by output row.
void Winograd::finish(const Launch& launch, const Geometry& g, const BoundEpilogue& epilogue, int64_t tile,
                      int64_t column, int columns, const float* finished) const {
  static const auto finish_rows = LATHE_ISA_SELECT(finish_tile);
  const TensorArg& out = launch.outputs[0];
  const TilePlace at = place(g, outputs_, tile);
  const int pixels = static_cast<int>(std::min<int64_t>(outputs_, g.out[2] - at.column));
  TileRows where;
  for (int i = 0; i < outputs_ && at.row + i < g.out[1]; ++i) {
    for (int j = 0; j < pixels; ++j)
      where.out[j] =
          out.as<float>() + at.n * out.strides[0] + (at.row + i) * out.strides[2] + (at.column + j) * out.strides[3];
    for (int o = 0; o < epilogue.count; ++o) {
      if (!epilogue.operands[o].varies_by_row) continue;
      const TensorArg& operand = launch.inputs[2 + static_cast<size_t>(o)];
      for (int j = 0; j < pixels; ++j)
        where.operand[o][j] = operand.as<float>() + at.n * broadcast_stride(operand, 0) +
                              (at.row + i) * broadcast_stride(operand, 2) +
                              (at.column + j) * broadcast_stride(operand, 3);
    }
    finish_rows(epilogue, where, const_cast<float*>(finished) + i * outputs_ * kMaxTileColumns, kMaxTileColumns, pixels,
                column, columns);
  }
}

}  // namespace

bool winograd_fits(const ConvShape& shape) {
  const std::array<int64_t, 3> three{1, 3, 3}, one{1, 1, 1};
  return shape.spatial == 2 && shape.groups == 1 && shape.kernel == three && shape.stride == one &&
         shape.dilation == one;
}

Result<std::unique_ptr<Kernel>> make_winograd(const ConvShape& shape, const ConvConfig& config, Epilogue epilogue) {
  constexpr int64_t kMaxBlock = 1 << 16;
  if (!winograd_fits(shape) || config.blocking.row_block > kMaxBlock)
    return fail(ErrorCode::plan_malformed, "conv step asks for Winograd where it cannot be used; build the plan again");
  return std::unique_ptr<Kernel>(new Winograd(shape, config, std::move(epilogue)));
}

}  // namespace lathe::cpu::conv
