// SPDX-License-Identifier: Apache-2.0
// Loops and the layers at their edge. In the graph they lie flat, as loop_argument and loop_result (ops/ops.def), until
// a build asks close() for the loop_end that holds them together.
#pragma once

#include <set>

#include "api/network/layer.h"

namespace lathe::api {

class Loop;

template <class Interface, class Table>
class LoopBoundary : public LayerOf<Interface, Table>, public nv::apiv::VLoopBoundaryLayer {
 public:
  nv::ILoop* getLoop() const noexcept override;

 protected:
  LoopBoundary(NetworkDefinition& network, nv::LayerType type, const char* kind, std::vector<TensorView*> inputs,
               Loop* loop)
      : LayerOf<Interface, Table>(network, type, kind, std::move(inputs)), loop_(loop) {
    this->mBoundary = this;
  }

 private:
  Loop* loop_;
};

class RecurrenceLayer final : public LoopBoundary<nv::IRecurrenceLayer, nv::apiv::VRecurrenceLayer> {
 public:
  RecurrenceLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, Loop* loop)
      : LoopBoundary(network, nv::LayerType::kRECURRENCE, "Recurrence", std::move(inputs), loop) {}

  void setInput(int32_t index, nv::ITensor& tensor) noexcept override;

  // What the next round takes; null until input 1 is there.
  const TensorView* next() const { return input(1); }
  // Dimensions in which a round leaves another extent than it begins with are unknown inside of the loop.
  void widen();

 private:
  int32_t max_inputs() const override { return 2; }
  size_t num_read_inputs() const override { return 1; }  // the other comes from inside of the loop
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  std::set<int64_t> varying_;
};

class TripLimitLayer final : public LoopBoundary<nv::ITripLimitLayer, nv::apiv::VTripLimitLayer> {
 public:
  TripLimitLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, Loop* loop, nv::TripLimit limit)
      : LoopBoundary(network, nv::LayerType::kTRIP_LIMIT, "TripLimit", std::move(inputs), loop), limit_(limit) {}

  nv::TripLimit getTripLimit() const noexcept override { return limit_; }

 private:
  size_t num_outputs() const override { return 0; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::TripLimit limit_;
};

class IteratorLayer final : public LoopBoundary<nv::IIteratorLayer, nv::apiv::VIteratorLayer> {
 public:
  IteratorLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, Loop* loop, int32_t axis, bool reverse)
      : LoopBoundary(network, nv::LayerType::kITERATOR, "Iterator", std::move(inputs), loop),
        axis_(axis),
        reverse_(reverse) {}

  void setAxis(int32_t axis) noexcept override { set(axis_, axis); }
  int32_t getAxis() const noexcept override { return axis_; }
  void setReverse(bool reverse) noexcept override { set(reverse_, reverse); }
  bool getReverse() const noexcept override { return reverse_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  int32_t axis_;
  bool reverse_;
};

class LoopOutputLayer final : public LoopBoundary<nv::ILoopOutputLayer, nv::apiv::VLoopOutputLayer> {
 public:
  LoopOutputLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, Loop* loop, nv::LoopOutput kind,
                  int32_t axis)
      : LoopBoundary(network, nv::LayerType::kLOOP_OUTPUT, "LoopOutput", std::move(inputs), loop),
        kind_(kind),
        axis_(axis) {}

  nv::LoopOutput getLoopOutput() const noexcept override { return kind_; }
  void setAxis(int32_t axis) noexcept override { set(axis_, axis); }
  int32_t getAxis() const noexcept override { return axis_; }

 private:
  int32_t max_inputs() const override { return kind_ == nv::LoopOutput::kLAST_VALUE ? 1 : 2; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::LoopOutput kind_;
  int32_t axis_;
};

class Loop final : public nv::ILoop, public nv::apiv::VLoop {
 public:
  Loop(NetworkDefinition& network, std::string name) : network_(network), name_(std::move(name)) { mImpl = this; }

  nv::IRecurrenceLayer* addRecurrence(nv::ITensor& initialValue) noexcept override;
  nv::ITripLimitLayer* addTripLimit(nv::ITensor& tensor, nv::TripLimit limit) noexcept override;
  nv::IIteratorLayer* addIterator(nv::ITensor& tensor, int32_t axis, bool reverse) noexcept override;
  nv::ILoopOutputLayer* addLoopOutput(nv::ITensor& tensor, nv::LoopOutput outputKind, int32_t axis) noexcept override;
  void setName(const char* name) noexcept override;
  const char* getName() const noexcept override { return name_.c_str(); }

  // After its layers were lowered; layers that know less then are to be lowered again.
  void widen();
  // Whether all is there that a loop needs; the network is settled.
  Result<> check() const;
  // In a copy of the network's graph: what holds the loop together.
  Result<> close(ir::Graph& copy) const;

 private:
  NetworkDefinition& network_;
  std::string name_;
  std::vector<RecurrenceLayer*> recurrences_;
  std::vector<IteratorLayer*> iterators_;
  std::vector<LoopOutputLayer*> outputs_;
  const TripLimitLayer* count_ = nullptr;
  const TripLimitLayer* condition_ = nullptr;
};

template <class Interface, class Table>
nv::ILoop* LoopBoundary<Interface, Table>::getLoop() const noexcept {
  return loop_;
}

}  // namespace lathe::api
