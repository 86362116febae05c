// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers: the kernels gemm_integer and conv_integer, and the tiles of every ISA level.
#include "kernels/cpu/conv_integer/conv_integer.h"
#include "kernels/cpu/gemm/integer_epilogue.h"
#include "kernels/cpu/gemm/integer_panels.h"
#include "kernels/cpu/gemm/matrix_tiles.h"
#include "kernels/cpu/gemm/tile.h"
#include "kernels/cpu/gemm_integer/gemm_integer.h"
#include "kernels/cpu/integer_forms.h"
#include "kernels/cpu/isa_levels.h"

namespace lathe::cpu {
Result<std::unique_ptr<Kernel>> make_gemm_integer(const Record& record);
Result<std::unique_ptr<Kernel>> make_conv_integer(const Record& record);

namespace {

using namespace testing;

// Of stacks of matrices, and weights [N, K] that all of them share.
void expect_products(const Form& form, const Levels& out, const std::vector<Levels>& operands, const Levels& a,
                     const std::vector<int8_t>& weights) {
  const int64_t k = a.arg.dims[2];
  const Program program = *parse_program(form.program);
  for (int64_t z = 0; z < out.arg.dims[0]; ++z)
    for (int64_t r = 0; r < out.arg.dims[1]; ++r)
      for (int64_t c = 0; c < out.arg.dims[2] && !::testing::Test::HasFailure(); ++c) {
        int64_t sum = 0;
        for (int64_t j = 0; j < k; ++j)
          sum += static_cast<int64_t>(a.at({z, r, j})) * weights[static_cast<size_t>(c * k + j)];
        expect_element(form, program, out, operands, {z, r, c}, sum);
      }
}

TEST(GemmInteger, RandomShapes) {
  for (int i = 0; i < 300 && !::testing::Test::HasFailure(); ++i) {
    const Form& form = forms()[static_cast<size_t>(i) % forms().size()];
    const int64_t b = pick(1, 2), m = one_of<int64_t>({1, 3, 13, 14, 29, 33, 50, 71}), k = 4 * pick(1, 40),
                  n = one_of<int64_t>({1, 3, 16, 17, 31, 48, 65, 100});
    const int width = static_cast<int>(one_of<int64_t>({16, 32, 48, 64}));
    SCOPED_TRACE(fmt::format("{} x {} x {} x {} width {}", b, m, k, n, width));
    const Levels a(pick(0, 1) ? DType::u8 : DType::i8, {b, m, k}, false);
    Levels out(form.to, {b, m, n}, false);
    const std::vector<int8_t> weights = random_weights(k * n);
    const gemm::Panels fours{k / 4, n, width};
    std::vector<int32_t> packed(static_cast<size_t>(gemm::packed_integers(fours, 1)));
    gemm::pack_integers(fours, 1, weights.data(), packed);
    const std::vector<Levels> operands = operands_of(form, {b, m, n}, 2, false);
    const gemm::Blocking blocking{width, one_of<int64_t>({0, 5}), one_of<int64_t>({0, 3, 16}), pick(0, 1) == 1};
    const auto params = encode_params(gemm::IntegerGemmParams{k, n, blocking, {form.to, form.operands}});
    const Program program = *parse_program(form.program);
    auto kernel = make_gemm_integer({params, &program});
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    std::vector<TensorArg> inputs{a.arg, flat(packed)};
    for (const Levels& operand : operands) inputs.push_back(operand.arg);
    run_kernel(**kernel, inputs, {out.arg}, static_cast<int>(pick(1, 2)));
    expect_products(form, out, operands, a, weights);
  }
}

// Rows of A that lie in a wider tensor of bytes: no multiple of four from each other, and once in uneven distances.
TEST(GemmInteger, RowsAtAnyDistance) {
  for (int i = 0; i < 40 && !::testing::Test::HasFailure(); ++i) {
    const int64_t b = pick(1, 2), m = pick(1, 50), k = 4 * pick(1, 40), n = 20, room = pick(0, 9);
    SCOPED_TRACE(fmt::format("{} x {} x {}, {} bytes between rows", b, m, k, room));
    Levels a(pick(0, 1) ? DType::u8 : DType::i8, {b, m + pick(0, 1), k + room}, false);
    a.arg.dims[1] = m;
    a.arg.dims[2] = k;
    const std::vector<int8_t> weights = random_weights(k * n);
    const gemm::Panels fours{k / 4, n, 16};
    std::vector<int32_t> packed(static_cast<size_t>(gemm::packed_integers(fours, 1)));
    gemm::pack_integers(fours, 1, weights.data(), packed);
    Levels out(DType::i32, {b, m, n}, false);
    const auto params = encode_params(gemm::IntegerGemmParams{k, n, {.width = 16}, {DType::i32}});
    auto kernel = make_gemm_integer({params});
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    const std::vector<TensorArg> inputs{a.arg, flat(packed)};
    run_kernel(**kernel, inputs, {out.arg}, 1);
    expect_products(forms().back(), out, {}, a, weights);
  }
}

// A stack of matrices of 8-bit integers, which lie transposed in memory or not.
Levels random_matrices(const std::vector<int64_t>& batch, int64_t rows, int64_t columns) {
  const bool transposed = pick(0, 1);
  std::vector<int64_t> dims = batch;
  dims.insert(dims.end(), {transposed ? columns : rows, transposed ? rows : columns});
  Levels levels(pick(0, 1) ? DType::u8 : DType::i8, dims, false);
  const int r = levels.arg.rank;
  if (transposed) {
    std::swap(levels.arg.dims[r - 1], levels.arg.dims[r - 2]);
    std::swap(levels.arg.strides[r - 1], levels.arg.strides[r - 2]);
  }
  return levels;
}

TEST(GemmInteger, ComputedMatrices) {
  using Dims = std::vector<int64_t>;
  for (int i = 0; i < 400 && !::testing::Test::HasFailure(); ++i) {
    const Form& form = forms()[static_cast<size_t>(i) % forms().size()];
    const int64_t batch = pick(1, 3), m = one_of<int64_t>({1, 3, 13, 14, 29, 33, 50, 71}), k = pick(1, 150),
                  n = one_of<int64_t>({1, 3, 16, 17, 31, 48, 65, 100});
    const int width = static_cast<int>(one_of<int64_t>({16, 32, 48, 64}));
    const Levels a = random_matrices(one_of<Dims>({{batch}, {batch}, {1}, {}}), m, k);
    const Levels b = random_matrices(one_of<Dims>({{batch}, {1}, {}}), k, n);
    SCOPED_TRACE(fmt::format("{} {} x {} {} x {}, {} of rank {} and {} of rank {}, width {}", batch, m, k, k, n,
                             name_of(a.arg.dtype), a.arg.rank, name_of(b.arg.dtype), b.arg.rank, width));
    Levels out(form.to, {batch, m, n}, false);
    const std::vector<Levels> operands = operands_of(form, {batch, m, n}, 2, false);
    const gemm::Blocking blocking{width, one_of<int64_t>({0, 5}), one_of<int64_t>({0, 3, 16}), pick(0, 1) == 1};
    const auto params = encode_params(gemm::IntegerGemmParams{0, 0, blocking, {form.to, form.operands}, false});
    const Program program = *parse_program(form.program);
    auto kernel = make_gemm_integer({params, &program});
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    std::vector<TensorArg> inputs{a.arg, b.arg};
    for (const Levels& operand : operands) inputs.push_back(operand.arg);
    run_kernel(**kernel, inputs, {out.arg}, static_cast<int>(pick(1, 2)));
    const auto dense = [batch](const Levels& levels, int64_t rows, int64_t columns) {
      std::vector<int64_t> all;
      for (int64_t z = 0; z < batch; ++z)
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < columns; ++c)
            all.push_back(static_cast<int64_t>(levels.at(levels.arg.rank == 3 ? Dims{z, r, c} : Dims{r, c})));
      return all;
    };
    const std::vector<int64_t> left = dense(a, m, k), right = dense(b, k, n);
    for (int64_t z = 0; z < batch; ++z)
      for (int64_t r = 0; r < m; ++r)
        for (int64_t c = 0; c < n && !::testing::Test::HasFailure(); ++c) {
          int64_t sum = 0;
          for (int64_t j = 0; j < k; ++j)
            sum += left[static_cast<size_t>((z * m + r) * k + j)] * right[static_cast<size_t>((z * k + j) * n + c)];
          expect_element(form, program, out, operands, {z, r, c}, sum);
        }
  }
}

// Each level between with each residual: sums of them are what the program says, also where its roundings decide.
TEST(GemmInteger, AddsLevelsAsTheProgramDoes) {
  if (isa_level() == IsaLevel::baseline) GTEST_SKIP() << "quotients are rounded twice";
  int fused = 0;
  for (int i = 0; i < 12 && !::testing::Test::HasFailure(); ++i) {
    // The first ones' sums lie in the middle between two levels again and again.
    const double step = i == 0 ? 0.06 : 0.02 + 1e-5 * static_cast<double>(pick(0, 9999));
    const double residual = i == 0 ? 0.08 : step * static_cast<double>(pick(500, 1500)) / 999;
    const double result = i == 0 ? 0.16 : step * static_cast<double>(pick(900, 2500)) / 997;
    const Form form{
        fmt::format("in=2; r2=affine r0 {4} -0; r3=constant {0}; r4=div r2 r3; r5=round r4; r6=clip r5 -100 "
                    "155; r7=affine r6 {0} -0; r8=affine r1 1 -{3}; r9=affine r8 {1} -0; r10=add r7 r9; "
                    "r11=relu r10; r12=constant {2}; r13=div r11 r12; r14=round r13; r15=clip r14 0 255; "
                    "out r15",
                    step, residual, result, i % 3, step / 64),
        {DType::u8},
        0,
        DType::u8};
    SCOPED_TRACE(form.program);
    const Program program = *parse_program(form.program);
    const bool is_fused = gemm::compile_integer_epilogue(&program, {form.to, form.operands})->sum.operand == 0;
    EXPECT_FALSE(i == 0 && is_fused);
    fused += is_fused ? 1 : 0;
    const int64_t k = i % 2 ? 4 : 64, n = 256;  // in vectors and in matrix registers
    Levels a(i % 4 < 2 ? DType::u8 : DType::i8, {1, n, k}, false), out(form.to, {1, n, n}, false);
    Levels other(DType::u8, {1, n, n}, false);
    std::vector<int8_t> weights(static_cast<size_t>(k * n), int8_t{0});
    for (int64_t r = 0; r < n; ++r) {
      a.storage[static_cast<size_t>(r * k)] = static_cast<std::byte>(r);
      weights[static_cast<size_t>(r * k)] = 64;
      for (int64_t c = 0; c < n; ++c) other.storage[static_cast<size_t>(r * n + c)] = static_cast<std::byte>(c);
    }
    const gemm::Panels fours{k / 4, n, 64};
    std::vector<int32_t> packed(static_cast<size_t>(gemm::packed_integers(fours, 1)));
    gemm::pack_integers(fours, 1, weights.data(), packed);
    const auto params = encode_params(gemm::IntegerGemmParams{k, n, {}, {form.to, form.operands}});
    auto kernel = make_gemm_integer({params, &program});
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    const std::vector<TensorArg> inputs{a.arg, flat(packed), other.arg};
    run_kernel(**kernel, inputs, {out.arg}, 1);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < n && !::testing::Test::HasFailure(); ++c) {
        const float values[] = {static_cast<float>(64 * a.at({0, r, 0})), static_cast<float>(c)};
        float want = 0;
        evaluate(program, values, {&want, 1});
        ASSERT_EQ(out.at({0, r, c}), static_cast<double>(want)) << r << ", " << c;
      }
  }
  EXPECT_GE(fused, 6) << "factors with the same levels are mostly there";
}

TEST(ConvInteger, RandomShapes) {
  for (int i = 0; i < 300 && !::testing::Test::HasFailure(); ++i) {
    const Form& form = forms()[static_cast<size_t>(i) % forms().size()];
    ConvShape shape;
    shape.groups = pick(1, 2);
    const int64_t channels = 4 * pick(1, i % 7 == 0 ? 14 : 6),
                  outputs = one_of<int64_t>({1, 5, 16, 33, 64});  // of a group
    shape.in_channels = channels / 4 * shape.groups;
    shape.out_channels = outputs * shape.groups;
    std::array<int64_t, 3> in{1, pick(7, 13), one_of<int64_t>({7, 8, 13, 40})}, size{1, 1, 1};
    const bool is_one_pixel = i % 7 == 0, is_a_line = i % 7 == 1;  // of which rows lie evenly, whatever the kernel
    for (int d = 1; d < 3; ++d) {
      if (is_a_line && d == 1) {
        in[d] = 1;
        continue;
      }
      shape.kernel[d] = pick(1, 3);
      shape.stride[d] = pick(1, 3);
      shape.dilation[d] = pick(1, 2);
      const int64_t reach = (shape.kernel[d] - 1) * shape.dilation[d];
      if (is_one_pixel) in[d] = reach + 1;
      shape.pad[d] = is_one_pixel || is_a_line ? 0 : pick(0, reach);
      size[d] = (in[d] + 2 * shape.pad[d] - reach - 1) / shape.stride[d] + 1;
    }
    const int64_t batch = pick(1, is_one_pixel ? 9 : 2), depth = channels * shape.volume();
    SCOPED_TRACE(fmt::format("{} groups of {} to {}, {}x{} kernel", shape.groups, channels, outputs, shape.kernel[1],
                             shape.kernel[2]));
    const Levels x(pick(0, 1) ? DType::u8 : DType::i8, {batch, channels * shape.groups, in[1], in[2]}, true);
    const std::vector<int64_t> dims{batch, shape.out_channels, size[1], size[2]};
    Levels out(form.to, dims, true);
    const bool computed = pick(0, 1);
    const Levels weights(computed && pick(0, 1) ? DType::u8 : DType::i8,
                         {shape.out_channels, channels, shape.kernel[1], shape.kernel[2]}, pick(0, 1));
    const auto weight = [&](int64_t o, int64_t t, int64_t c) {
      return static_cast<int64_t>(weights.at({o, c, t / shape.kernel[2], t % shape.kernel[2]}));
    };
    std::vector<int8_t> columns;  // [O, taps, C]
    for (int64_t i = 0; i < shape.out_channels * depth; ++i)
      columns.push_back(static_cast<int8_t>(weight(i / depth, i / channels % shape.volume(), i % channels)));
    conv::ConvConfig config;
    config.blocking = {static_cast<int>(one_of<int64_t>({16, 32, 48, 64})), one_of<int64_t>({0, 5}),
                       one_of<int64_t>({0, 3}), pick(0, 1) == 1};
    config.row_aligned = pick(0, 1);
    const gemm::Panels fours{depth / 4, outputs, config.blocking.width};
    std::vector<int32_t> packed(static_cast<size_t>(gemm::packed_integers(fours, shape.groups)));
    gemm::pack_integers(fours, shape.groups, columns.data(), packed);
    const std::vector<Levels> operands = operands_of(form, dims, 1, true);
    const auto params = encode_params(conv::ConvIntegerParams{{shape, config}, {form.to, form.operands}, !computed});
    const Program program = *parse_program(form.program);
    auto kernel = make_conv_integer({params, &program});
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    std::vector<TensorArg> inputs{x.arg, computed ? weights.arg : flat(packed)};
    for (const Levels& operand : operands) inputs.push_back(operand.arg);
    run_kernel(**kernel, inputs, {out.arg}, static_cast<int>(pick(1, 2)));
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t o = 0; o < shape.out_channels; ++o)
        for (int64_t p = 0; p < size[1] * size[2] && !::testing::Test::HasFailure(); ++p) {
          const int64_t oh = p / size[2], ow = p % size[2];
          int64_t sum = 0;
          for (int64_t t = 0; t < shape.volume(); ++t) {
            const int64_t h = oh * shape.stride[1] - shape.pad[1] + t / shape.kernel[2] * shape.dilation[1],
                          w = ow * shape.stride[2] - shape.pad[2] + t % shape.kernel[2] * shape.dilation[2];
            if (h < 0 || w < 0 || h >= in[1] || w >= in[2]) continue;
            for (int64_t c = 0; c < channels; ++c)
              sum += static_cast<int64_t>(x.at({n, o / outputs * channels + c, h, w})) * weight(o, t, c);
          }
          expect_element(form, program, out, operands, {n, o, oh, ow}, sum);
        }
  }
}

// Every tile of a table, with sums that u8 by i8 reach at most.
void check_tiles(const gemm::TileTable& table, std::string_view name) {
  const Form& form = forms()[2];
  const Program program = *parse_program(form.program);
  const gemm::IntegerProgram compiled = *gemm::compile_integer_epilogue(&program, {form.to, form.operands});
  for (int vectors = 1; vectors <= table.vectors; ++vectors)
    for (int rows = 1; rows <= table.max_rows[vectors - 1] && !::testing::Test::HasFailure(); ++rows) {
      SCOPED_TRACE(fmt::format("{}: {} rows of {} vectors", name, rows, vectors));
      const int64_t k = 4 * pick(1, 50), n = static_cast<int64_t>(vectors) * table.lanes - pick(0, table.lanes - 1);
      const bool is_signed = pick(0, 1);
      const Levels a(is_signed ? DType::i8 : DType::u8, {rows, k}, false);
      Levels out(form.to, {rows, n}, false);
      const std::vector<int8_t> weights = random_weights(k * n);
      const gemm::Panels fours{k / 4, n, 64};
      std::vector<int32_t> packed(static_cast<size_t>(gemm::packed_integers(fours, 1)));
      gemm::pack_integers(fours, 1, weights.data(), packed);
      const std::vector<Levels> operands = operands_of(form, {rows, n}, 1, false);
      std::vector<TensorArg> args;
      for (const Levels& operand : operands) args.push_back(operand.arg);
      std::vector<std::byte> scratch(gemm::integer_scratch_bytes(n, args.size()));
      const gemm::IntegerEpilogue epilogue = gemm::bind_integer_epilogue(
          compiled, args, out.arg, 1, is_signed ? packed.data() + fours.floats() : nullptr, scratch.data());
      TileRows where{};
      const float* a_rows[kMaxTileRows];
      for (int r = 0; r < rows; ++r) {
        a_rows[r] = element_at(static_cast<const void*>(a.storage.data()), r * k, 1);
        where.out[r] = element_at(out.arg.data, r * n, 1);
      }
      const gemm::Tap tap{0, 0, static_cast<int32_t>(k / 4), 0};
      gemm::Tile tile{};
      tile.a_rows = a_rows;
      tile.taps = &tap;
      tile.tap_count = 1;
      tile.b = reinterpret_cast<const float*>(packed.data());
      tile.b_stride = fours.stride(0);
      tile.columns = static_cast<int>(n);
      tile.epilogue = &epilogue.middle;
      tile.integers = &epilogue;
      tile.where = &where;
      tile.rows = rows;
      gemm::MatrixSetup matrices(table.leave);
      tile.b_rows = fours.k;
      tile.configured = matrices.code();
      // The panel may be narrower than the tile's vectors: those that it lacks belong to a smaller tile.
      if (tile.b_stride < vectors * table.lanes) continue;
      table.functions[vectors - 1][rows - 1](tile);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < n && !::testing::Test::HasFailure(); ++c) {
          int64_t sum = 0;
          for (int64_t j = 0; j < k; ++j)
            sum += static_cast<int64_t>(a.at({r, j})) * weights[static_cast<size_t>(c * k + j)];
          expect_element(form, program, out, operands, {r, c}, sum);
        }
    }
}

TEST(IntegerTiles, EveryLevel) {
  for (const auto& level : LATHE_ISA_LEVELS(integer_tile_table)) check_tiles(level.function(false), level.level);
  const auto best = LATHE_ISA_LEVELS(integer_tile_table).back();
  if (multiplies_bytes()) check_tiles(best.function(true), fmt::format("{} with VNNI", best.level));
  if (has_matrix_registers()) check_tiles(LATHE_ISA_SELECT(matrix_tiles)()->integers, "matrix registers");
#if defined(__x86_64__)
  if (isa_level() >= IsaLevel::avx2 && __builtin_cpu_supports("avxvnni"))
    check_tiles(avx2::integer_tile_table(true), "AVX-VNNI");
#endif
}

TEST(GemmInteger, RefusesHostileParameters) {
  const std::vector<int64_t> good = encode_params(gemm::IntegerGemmParams{8, 8});
  ASSERT_TRUE(make_gemm_integer({good}));
  for (size_t i = 0; i < good.size(); ++i)
    for (int64_t value : {INT64_MIN, int64_t{-1}, int64_t{1} << 40, INT64_MAX}) {
      auto bad = good;
      bad[i] = value;
      EXPECT_FALSE(make_gemm_integer({bad})) << i << " = " << value;
    }
  EXPECT_FALSE(make_gemm_integer({std::span<const int64_t>(good).first(3)}));
  const auto rounded = encode_params(gemm::IntegerGemmParams{8, 8, {}, {DType::u8}});
  EXPECT_FALSE(make_gemm_integer({rounded})) << "nothing rounds to levels";
}

TEST(GemmInteger, RefusesTensorsThatDoNotFit) {
  const auto params = encode_params(gemm::IntegerGemmParams{8, 20, {.width = 16}});
  auto kernel = make_gemm_integer({params});
  ASSERT_TRUE(kernel);
  std::vector<int32_t> packed(static_cast<size_t>(gemm::packed_integers({2, 20, 16}, 1))), few(10);
  const Levels a(DType::u8, {4, 8}, false), floats(DType::f32, {4, 8}, false), wrong(DType::u8, {4, 12}, false);
  const Levels out(DType::f32, {4, 20}, false), levels(DType::u8, {4, 20}, false);
  const auto refuses = [&](const Levels& x, std::vector<int32_t>& w, const Levels& y) {
    const std::vector<TensorArg> inputs{x.arg, flat(w)}, outputs{y.arg};
    return !(*kernel)->check(inputs, outputs);
  };
  EXPECT_FALSE(refuses(a, packed, out));
  EXPECT_TRUE(refuses(floats, packed, out));
  EXPECT_TRUE(refuses(wrong, packed, out));
  EXPECT_TRUE(refuses(a, few, out));
  EXPECT_TRUE(refuses(a, packed, levels));
}

}  // namespace
}  // namespace lathe::cpu
