// SPDX-License-Identifier: Apache-2.0
#include "runtime/packing_table.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/divide.h"
#include "ops/pack_bytes.h"

namespace lathe {
namespace {

using packing::PackedBox;
using packing::PackedStep;

constexpr int64_t kMostElements = INT32_MAX;  // of all boxes, of which none is larger
static_assert(packing::kMostPackedDims == kMostBoxDims);

long type_of(DType dtype) {
  if (dtype == DType::f16) return packing::kPackedF16;
  if (dtype == DType::bf16) return packing::kPackedBf16;
  return dtype == DType::f32 ? packing::kPackedF32 : packing::kPackedF64;
}

long operation_of(const ChannelStep& step) {
  if (!step.op) return packing::kPackedCast;
  if (*step.op == ElementwiseOp::add) return packing::kPackedAdd;
  if (*step.op == ElementwiseOp::sub) return packing::kPackedSubtract;
  return *step.op == ElementwiseOp::mul ? packing::kPackedMultiply : packing::kPackedDivide;
}

uint64_t numbers_of(const ChannelStep& step) { return step.op ? static_cast<uint64_t>(step.numbers.volume()) : 0; }

unsigned long address_of(const std::byte* data) { return std::bit_cast<unsigned long>(data); }

}  // namespace

Result<std::unique_ptr<Kernel>> make_packing_kernel(Device& device, std::span<const std::span<const std::byte>> code,
                                                    uint32_t module) {
  Launch launch;
  launch.code = module;
  launch.entry = "lathe_kernel";
  launch.grid[0] = Expr::symbol(0);
  launch.block = packing::kPackingThreads;
  launch.args.resize(2);
  launch.args[0].kind = LaunchArg::input;
  launch.args[1].kind = LaunchArg::output;
  return device.make_kernel({"pack", {}, nullptr, {&launch, 1}, nullptr, code});
}

bool PackingTable::takes(const ConstantContent& content) {
  const size_t size = size_of(content.elements.type());
  return content.packing && is_dense(*content.packing) && checked_volume(content.packing->dims) <= kMostElements &&
         std::has_single_bit(size) && size <= 8;
}

void PackingTable::Extent::add(const ConstantContent& content) {
  boxes += content.packing->boxes.size();
  steps += content.elements.steps().size();
  for (const ChannelStep& step : content.elements.steps()) numbers += numbers_of(step);
}

uint64_t PackingTable::Extent::bytes() const {
  return sizeof(packing::PackingHead) + boxes * sizeof(PackedBox) + steps * sizeof(PackedStep) +
         numbers * sizeof(double);
}

PackingTable::PackingTable(const Extent& extent, std::byte* memory, std::byte* address, RangeCheck check)
    : memory_(memory), address_(address), check_(check) {
  auto* const head = new (memory) packing::PackingHead{static_cast<long>(extent.boxes)};
  box_ = reinterpret_cast<PackedBox*>(head + 1);
  steps_ = step_ = reinterpret_cast<PackedStep*>(box_ + extent.boxes);
  number_ = reinterpret_cast<double*>(steps_ + extent.steps);
}

// Neighbours of where elements go come last, so that threads write side by side.
void PackingTable::add_box(const PackingBox& box, PackedBox packed) {
  packed.elements = 1;
  for (size_t d = 0; d < box.extents.size(); ++d) {
    const packing::PackedAxis axis{box.extents[d], box.from_strides[d], box.to_strides[d]};
    packed.elements *= axis.extent;
    packing::PackedAxis* to = packed.axes + packed.dims++;
    for (; to != packed.axes && std::abs(to[-1].to_stride) < std::abs(axis.to_stride); --to) *to = to[-1];
    *to = axis;
  }
  packed.first_from = box.from;
  packed.first_to = box.to;
  packed.first_block = blocks_;
  blocks_ += ceil_div(packed.elements, packing::kPackedByBlock);
  *box_++ = packed;
}

void PackingTable::add(const ConstantContent& content, const std::byte* from, std::byte* to) {
  const ChannelArithmetic& elements = content.elements;
  PackedBox packed{};
  packed.from = address_of(from);
  packed.to = address_of(to);
  packed.checks = check_ == RangeCheck::on && !elements.holds_range() ? 1 : 0;
  packed.first_step = step_ - steps_;
  packed.steps = static_cast<long>(elements.steps().size());
  const long bits = std::countr_zero(size_of(elements.type()));  // kPackedBits8 is that of one byte
  packed.from_type = packed.steps > 0 ? type_of(elements.source().dtype()) : bits;
  packed.to_type = packed.steps > 0 ? type_of(elements.type()) : bits;
  for (const ChannelStep& step : elements.steps()) {
    const auto size = static_cast<long>(numbers_of(step));
    const auto offset = reinterpret_cast<std::byte*>(number_) - memory_;
    *step_++ = {operation_of(step), address_of(address_ + offset), step.inner, size, type_of(step.type)};
    if (size > 0) number_ = std::copy_n(step.numbers.as<double>(), size, number_);
  }
  for (const PackingBox& box : content.packing->boxes) add_box(box, packed);
}

Result<> PackingTable::launch(const Kernel& kernel, std::byte* found, Queue& queue) const {
  const TensorArg table{.data = address_}, range{.data = found};
  const Operands operands{{&table, 1}, {&range, 1}, {&blocks_, 1}, nullptr};
  LATHE_TRY(kernel.prepare(operands, 1));
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(queue));
  return kernel.enqueue(operands, nullptr, queue);
}

}  // namespace lathe
