// SPDX-License-Identifier: Apache-2.0
// GatherBlockQuantized of ONNX Runtime's domain: rows of a table of levels, whose blocks have a scale each.
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

class BlockTable {
 public:
  explicit BlockTable(NodeContext& c)
      : c_(c), levels_(c.require(0)), indices_(c.require(1)), scales_(c.require(2)), zero_points_(c.input(3)) {}

  void run() {
    read();
    if (c_.failed()) return;
    // Levels of less than a byte that are no bytes have no rows to gather.
    const bool has_rows = !is_packed(levels_->dtype()) && gathered_ != blocked_ &&
                          c_.dim(scales_, gathered_) == c_.dim(levels_, gathered_);
    c_.set_output(0, has_rows ? of_rows() : c_.gather(dequantized(blocked_), indices_, gathered_));
  }

 private:
  void read() {
    gathered_ = c_.axis(c_.integer("gather_axis", 0), levels_->rank());
    blocked_ = c_.axis(c_.integer("quantize_axis", 1), levels_->rank());
    block_ = c_.integer("block_size", 128);
    bits_ = c_.integer("bits", 4);
    if (c_.failed()) return;
    const DType type = levels_->dtype();
    const bool is_float = type != DType::u8 && type != DType::i4 && type != DType::u4;
    if (block_ != 0 || !is_float)
      if (block_ < 16 || (block_ & (block_ - 1)) != 0)
        return c_.invalid("block_size is {}; it is a power of two, at least 16", block_);
    if (is_float && zero_points_) return c_.invalid("levels of type {} have no zero points", name_of(type));
    if (scales_->rank() != levels_->rank())
      return c_.invalid("the scales have {} dimensions, expected {}", scales_->rank(), levels_->rank());
    if (type != DType::u8) return;
    if (bits_ != 2 && bits_ != 4 && bits_ != 8) return c_.unsupported("bits is {}; give 2, 4 or 8", bits_);
    if (gathered_ != 0 || (bits_ < 8 && blocked_ == 0))
      return c_.invalid("rows of bytes are gathered along axis 0, and packed ones quantised along another");
  }

  // Levels of fewer bits, the first of a byte in its lowest ones.
  ir::Value* unpacked(ir::Value* x) {
    if (levels_->dtype() != DType::u8 || bits_ == 8) return x;
    std::vector<ir::Value*> parts;
    for (int64_t at = 0; at < 8; at += bits_) {
      ir::Value* shifted = c_.binary(ElementwiseOp::shift_right, x, static_cast<double>(at));
      parts.push_back(c_.unsqueeze(
          c_.binary(ElementwiseOp::bitwise_and, shifted, static_cast<double>((1 << bits_) - 1)), {x->rank()}));
    }
    return c_.reshape(c_.concat(std::move(parts), x->rank()), c_.concat({c_.shape_of(x, 0, -1), c_.ints({-1})}, 0));
  }

  ir::Value* of_rows() {
    for (ir::Value** x : {&levels_, &scales_, &zero_points_})
      if (*x) *x = c_.gather(*x, indices_, gathered_);
    return dequantized(blocked_ < gathered_ ? blocked_ : blocked_ + indices_->rank() - 1);
  }

  // With blocks along `axis`.
  ir::Value* dequantized(int64_t axis) {
    const bool is_bytes = levels_->dtype() == DType::u8;
    ir::Value *levels = unpacked(levels_), *zero = nullptr;
    if (zero_points_) {
      zero = unpacked(zero_points_);
      const auto blocks = c_.dim(scales_, scales_->rank() - 1).as_constant();
      if (zero != zero_points_ && blocks) zero = c_.slice(zero, -1, 0, *blocks);
    } else if (is_bytes) {
      zero = c_.expand(c_.scalar(static_cast<double>(1 << (bits_ - 1)), DType::u8), c_.shape_of(scales_));
    }
    DequantizeAttrs attributes;
    attributes.to = scales_->dtype();
    for (int64_t i = 0; i < levels->rank(); ++i)
      attributes.blocks.push_back(i == axis ? block_ : c_.dim(scales_, i) == c_.dim(levels, i) ? 1 : 0);
    std::vector<ir::Value*> operands{levels, scales_};
    if (zero) operands.push_back(zero);
    return c_.add(attributes, std::move(operands));
  }

  NodeContext& c_;
  ir::Value *levels_, *indices_, *scales_, *zero_points_;
  int64_t gathered_ = 0, blocked_ = 1, block_ = 128, bits_ = 4;
};

}  // namespace

void import_gather_block_quantized(NodeContext& c) { BlockTable(c).run(); }

}  // namespace lathe::onnx
