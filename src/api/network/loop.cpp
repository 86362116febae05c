// SPDX-License-Identifier: Apache-2.0
#include "api/network/loop.h"

#include "api/network/network_add.h"

namespace lathe::api {

void RecurrenceLayer::setInput(int32_t index, nv::ITensor& tensor) noexcept {
  varying_.clear();
  Layer::setInput(index, tensor);
}

void RecurrenceLayer::widen() {
  const ir::Value *begun = input(0)->value(), *left = next() ? next()->value() : nullptr;
  if (!begun || !left || begun->rank() != left->rank() || error()) return;
  const Shape& inside = output(0)->value()->shape();
  const size_t known = varying_.size();
  for (size_t d = 0; d < inside.size(); ++d)
    if (inside[d] != left->shape()[d]) varying_.insert(static_cast<int64_t>(d));
  if (varying_.size() > known) touch();
}

Result<std::vector<ir::Value*>> RecurrenceLayer::lower(LayerLowering& lowering) {
  LoopArgumentAttrs attributes;
  attributes.carried = true;
  attributes.varying.assign(varying_.begin(), varying_.end());
  return std::vector{lowering.add(attributes, {in(0)})};
}

Result<std::vector<ir::Value*>> TripLimitLayer::lower(LayerLowering&) {
  const ValueType& type = in(0)->type();
  const bool counts = limit_ == nv::TripLimit::kCOUNT;
  const bool fits = counts ? type.dtype == DType::i32 || type.dtype == DType::i64 : type.dtype == DType::boolean;
  if (!fits || type.rank() != 0)
    return fail(ErrorCode::type_mismatch, "a trip limit of kind {} takes {} without dimensions, but '{}' is {}{}",
                counts ? "kCOUNT" : "kWHILE", counts ? "an INT32 or INT64" : "a BOOL", in(0)->name(),
                name_of(type.dtype), to_string(type.shape));
  return std::vector<ir::Value*>();
}

Result<std::vector<ir::Value*>> IteratorLayer::lower(LayerLowering& lowering) {
  LoopArgumentAttrs attributes;
  attributes.axis = axis_;
  attributes.reversed = reverse_;
  return std::vector{lowering.add(attributes, {in(0)})};
}

Result<std::vector<ir::Value*>> LoopOutputLayer::lower(LayerLowering& lowering) {
  LoopResultAttrs attributes;
  if (kind_ == nv::LoopOutput::kLAST_VALUE) return std::vector{lowering.add(attributes, {in(0)})};
  attributes.stacks = true;
  attributes.axis = axis_;
  attributes.reversed = kind_ == nv::LoopOutput::kREVERSE;
  ir::Value* length = in(1);
  if (!length)
    return fail(ErrorCode::graph_invalid, "kCONCATENATE and kREVERSE need the length of the result; call setInput(1)");
  if ((length->dtype() != DType::i32 && length->dtype() != DType::i64) || length->rank() != 0)
    return fail(ErrorCode::type_mismatch,
                "input 1 is the length, an INT32 or INT64 without dimensions, but '{}' is {}{}", length->name(),
                name_of(length->dtype()), to_string(length->shape()));
  return std::vector{lowering.add(attributes, {in(0), nullptr, lowering.cast(length, DType::i64)})};
}

nv::IRecurrenceLayer* Loop::addRecurrence(nv::ITensor& initialValue) noexcept {
  return network_.add_to(recurrences_, "ILoop::addRecurrence", {&initialValue}, this);
}

nv::ITripLimitLayer* Loop::addTripLimit(nv::ITensor& tensor, nv::TripLimit limit) noexcept {
  constexpr const char* kWhere = "ILoop::addTripLimit";
  const TripLimitLayer*& place = limit == nv::TripLimit::kCOUNT ? count_ : condition_;
  if (place)
    return guarded(
        network_.entry(), kWhere, static_cast<nv::ITripLimitLayer*>(nullptr), [&]() -> Result<nv::ITripLimitLayer*> {
          return fail(ErrorCode::invalid_state, "loop '{}' has a trip limit of this kind, '{}'", name_, place->name());
        });
  auto* layer = network_.add<TripLimitLayer>(kWhere, {&tensor}, this, limit);
  place = layer;
  return layer;
}

nv::IIteratorLayer* Loop::addIterator(nv::ITensor& tensor, int32_t axis, bool reverse) noexcept {
  return network_.add_to(iterators_, "ILoop::addIterator", {&tensor}, this, axis, reverse);
}

nv::ILoopOutputLayer* Loop::addLoopOutput(nv::ITensor& tensor, nv::LoopOutput outputKind, int32_t axis) noexcept {
  return network_.add_to(outputs_, "ILoop::addLoopOutput", {&tensor}, this, outputKind, axis);
}

void Loop::setName(const char* name) noexcept {
  guarded(network_.entry(), "ILoop::setName", [&]() -> Result<> {
    LATHE_ASSIGN(name_, to_string(name, "loop name"));
    return {};
  });
}

void Loop::widen() {
  for (RecurrenceLayer* recurrence : recurrences_) recurrence->widen();
}

Result<> Loop::check() const {
  if (outputs_.empty()) return {};  // nothing of it is asked for
  if (!count_ && !condition_)
    return fail(ErrorCode::graph_invalid, "loop '{}' has no trip limit, and would never end; call addTripLimit()",
                name_);
  for (const RecurrenceLayer* recurrence : recurrences_)
    if (!recurrence->next())
      return fail(ErrorCode::graph_invalid, "layer '{}' of loop '{}' has no value for the next round; call setInput(1)",
                  recurrence->name(), name_);
  return {};
}

Result<> Loop::close(ir::Graph& copy) const {
  if (outputs_.empty()) return {};
  const auto in_copy = [&](const TensorView* tensor) { return copy.find_value(tensor->value()->name()); };
  const auto limit = [&](const TripLimitLayer* layer) { return layer ? in_copy(layer->input(0)) : nullptr; };
  std::vector<ir::Value*> operands = {limit(count_), limit(condition_)};
  for (const RecurrenceLayer* recurrence : recurrences_) operands.push_back(in_copy(recurrence->output(0)));
  for (const RecurrenceLayer* recurrence : recurrences_) operands.push_back(in_copy(recurrence->next()));
  for (const IteratorLayer* iterator : iterators_) operands.push_back(in_copy(iterator->output(0)));
  LoopEndAttrs attributes;
  attributes.carried = std::ssize(recurrences_);
  LATHE_ASSIGN(ir::Value * token, copy.add_value(attributes, std::move(operands), {name_, {}, {}}));
  for (const LoopOutputLayer* output : outputs_)
    LATHE_TRY(copy.set_input(in_copy(output->output(0))->producer(), 1, token));
  return {};
}

nv::ILoop* NetworkDefinition::addLoop() noexcept {
  return guarded(entry(), "INetworkDefinition::addLoop", static_cast<nv::ILoop*>(nullptr), [&]() -> Result<nv::ILoop*> {
    loops_.push_back(std::make_unique<Loop>(*this, fmt::format("(Unnamed Loop* {})", loops_.size())));
    return loops_.back().get();
  });
}

}  // namespace lathe::api
