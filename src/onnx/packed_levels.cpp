// SPDX-License-Identifier: Apache-2.0
#include "onnx/packed_levels.h"

#include "base/encoding.h"

namespace lathe::onnx {
namespace {

Result<Tensor> levels_of(const Tensor& bytes, const LevelRows& form, int64_t pitch, const std::vector<int64_t>& order) {
  const auto& [bits, rows, columns] = form;
  const DType type = level_type(bits);
  if (order.empty() && columns * bits == pitch * 8)
    return Tensor::view(type, {rows, columns}, bytes.data(), bytes.owner());
  LATHE_ASSIGN(Tensor levels, Tensor::allocate(type, {rows, columns}));
  levels.clear_end();
  const auto* row = bytes.as<uint8_t>();
  const auto read = [&](int64_t j) { return bits == 8 ? row[j] : load_code(type, row, j); };
  for (int64_t i = 0; i < rows; ++i, row += pitch)
    for (int64_t j = 0; j < columns; ++j) {
      const uint8_t code = read(order.empty() ? j : order[static_cast<size_t>(j)]);
      if (bits == 8)
        levels.mutable_as<uint8_t>()[i * columns + j] = code;
      else
        store_code(type, levels.mutable_data(), i * columns + j, code);
    }
  return levels;
}

}  // namespace

DType level_type(int64_t bits) { return bits == 2 ? DType::u2 : bits == 4 ? DType::u4 : DType::u8; }

ir::Value* unpacked_levels(NodeContext& c, size_t input, std::string_view what, const LevelRows& form, int64_t pitch,
                           const std::vector<int64_t>& order) {
  const std::optional<Tensor> bytes = c.known(c.require(input));
  if (c.failed()) return c.require(input);
  if (pitch == 0) pitch = form.row_bytes();
  if (!bytes) {
    c.unsupported("{} is computed while running; give a constant", what);
  } else if (bytes->dtype() != DType::u8 || bytes->volume() != form.rows * pitch) {
    c.invalid("{} has {} elements of type {}; {} rows of {} levels of {} bits ask for {} of uint8", what,
              bytes->volume(), name_of(bytes->dtype()), form.rows, form.columns, form.bits, form.rows * pitch);
  }
  return c.failed() ? c.require(input) : c.constant(levels_of(*bytes, form, pitch, order));
}

}  // namespace lathe::onnx
