// SPDX-License-Identifier: Apache-2.0
// Loops and conditionals. Include NvInfer.h instead.
#ifndef NVINFER_LAYERS_CONTROL_H
#define NVINFER_LAYERS_CONTROL_H

#include "nvinfer/tensor.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// Base of the layers at the edge of a loop.
class ILoopBoundaryLayer : public ILayer {
 public:
  ILoop* getLoop() const noexcept { return mBoundary->getLoop(); }

 protected:
  virtual ~ILoopBoundaryLayer() noexcept = 0;
  apiv::VLoopBoundaryLayer* mBoundary;
};
inline ILoopBoundaryLayer::~ILoopBoundaryLayer() noexcept = default;

// A value carried from one iteration to the next: input 0 at first, input 1 afterwards.
class IRecurrenceLayer : public ILoopBoundaryLayer {
 public:
  using ILayer::setInput;

 protected:
  virtual ~IRecurrenceLayer() noexcept = 0;
  apiv::VRecurrenceLayer* mImpl;
};
inline IRecurrenceLayer::~IRecurrenceLayer() noexcept = default;

// A value that leaves a loop. Input 1 gives the length for kCONCATENATE and kREVERSE.
class ILoopOutputLayer : public ILoopBoundaryLayer {
 public:
  LoopOutput getLoopOutput() const noexcept { return mImpl->getLoopOutput(); }

  // Along which iterations are joined.
  void setAxis(int32_t axis) noexcept { mImpl->setAxis(axis); }
  int32_t getAxis() const noexcept { return mImpl->getAxis(); }

  using ILayer::setInput;

 protected:
  virtual ~ILoopOutputLayer() noexcept = 0;
  apiv::VLoopOutputLayer* mImpl;
};
inline ILoopOutputLayer::~ILoopOutputLayer() noexcept = default;

// Says how often a loop runs.
class ITripLimitLayer : public ILoopBoundaryLayer {
 public:
  TripLimit getTripLimit() const noexcept { return mImpl->getTripLimit(); }

 protected:
  virtual ~ITripLimitLayer() noexcept = 0;
  apiv::VTripLimitLayer* mImpl;
};
inline ITripLimitLayer::~ITripLimitLayer() noexcept = default;

// Gives one slice of a tensor per iteration.
class IIteratorLayer : public ILoopBoundaryLayer {
 public:
  void setAxis(int32_t axis) noexcept { mImpl->setAxis(axis); }
  int32_t getAxis() const noexcept { return mImpl->getAxis(); }

  // From last to first.
  void setReverse(bool reverse) noexcept { mImpl->setReverse(reverse); }
  bool getReverse() const noexcept { return mImpl->getReverse(); }

 protected:
  virtual ~IIteratorLayer() noexcept = 0;
  apiv::VIteratorLayer* mImpl;
};
inline IIteratorLayer::~IIteratorLayer() noexcept = default;

// A loop inside a network; its boundary layers make it. Owned by the network. Adders return nullptr on failure.
class ILoop : public INoCopy {
 public:
  // setInput(1, ...) of the result gives the value for the next iteration.
  IRecurrenceLayer* addRecurrence(ITensor& initialValue) noexcept { return mImpl->addRecurrence(initialValue); }

  // At least one per loop, at most one of each kind. kCOUNT: 0-D integer; kWHILE: 0-D kBOOL.
  ITripLimitLayer* addTripLimit(ITensor& tensor, TripLimit limit) noexcept {
    return mImpl->addTripLimit(tensor, limit);
  }

  IIteratorLayer* addIterator(ITensor& tensor, int32_t axis = 0, bool reverse = false) noexcept {
    return mImpl->addIterator(tensor, axis, reverse);
  }

  ILoopOutputLayer* addLoopOutput(ITensor& tensor, LoopOutput outputKind, int32_t axis = 0) noexcept {
    return mImpl->addLoopOutput(tensor, outputKind, axis);
  }

  // Copied.
  void setName(const char* name) noexcept { mImpl->setName(name); }
  const char* getName() const noexcept { return mImpl->getName(); }

 protected:
  virtual ~ILoop() noexcept = 0;
  apiv::VLoop* mImpl;
};
inline ILoop::~ILoop() noexcept = default;

// Base of the layers at the edge of a conditional.
class IIfConditionalBoundaryLayer : public ILayer {
 public:
  IIfConditional* getConditional() const noexcept { return mBoundary->getConditional(); }

 protected:
  virtual ~IIfConditionalBoundaryLayer() noexcept = 0;
  apiv::VConditionalBoundaryLayer* mBoundary;
};
inline IIfConditionalBoundaryLayer::~IIfConditionalBoundaryLayer() noexcept = default;

// Holds the condition of a conditional.
class IConditionLayer : public IIfConditionalBoundaryLayer {
 protected:
  virtual ~IConditionLayer() noexcept = 0;
  apiv::VConditionLayer* mImpl;
};
inline IConditionLayer::~IConditionLayer() noexcept = default;

// Brings an outer tensor into a conditional.
class IIfConditionalInputLayer : public IIfConditionalBoundaryLayer {
 protected:
  virtual ~IIfConditionalInputLayer() noexcept = 0;
  apiv::VConditionalInputLayer* mImpl;
};
inline IIfConditionalInputLayer::~IIfConditionalInputLayer() noexcept = default;

// Its output is one of its two inputs, as the condition says.
class IIfConditionalOutputLayer : public IIfConditionalBoundaryLayer {
 protected:
  virtual ~IIfConditionalOutputLayer() noexcept = 0;
  apiv::VConditionalOutputLayer* mImpl;
};
inline IIfConditionalOutputLayer::~IIfConditionalOutputLayer() noexcept = default;

// An if-else inside a network. Owned by the network.
class IIfConditional : public INoCopy {
 public:
  // A 0-D kBOOL tensor. nullptr on failure, as below.
  IConditionLayer* setCondition(ITensor& condition) noexcept { return mImpl->setCondition(condition); }

  // Two tensors of equal type and rank.
  IIfConditionalOutputLayer* addOutput(ITensor& trueSubgraphOutput, ITensor& falseSubgraphOutput) noexcept {
    return mImpl->addOutput(trueSubgraphOutput, falseSubgraphOutput);
  }

  IIfConditionalInputLayer* addInput(ITensor& input) noexcept { return mImpl->addInput(input); }

  // Copied.
  void setName(const char* name) noexcept { mImpl->setName(name); }
  const char* getName() const noexcept { return mImpl->getName(); }

 protected:
  virtual ~IIfConditional() noexcept = 0;
  apiv::VIfConditional* mImpl;
};
inline IIfConditional::~IIfConditional() noexcept = default;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_LAYERS_CONTROL_H
