// SPDX-License-Identifier: Apache-2.0
// Layers that are made of several ops: sampling at points, reversal of sequences, suppression of boxes, ragged rows.
#pragma once

#include "api/network/layer.h"

namespace lathe::api {

class GridSampleLayer final : public LayerOf<nv::IGridSampleLayer, nv::apiv::VGridSampleLayer> {
 public:
  GridSampleLayer(NetworkDefinition& network, std::vector<TensorView*> inputs)
      : LayerOf(network, nv::LayerType::kGRID_SAMPLE, "GridSample", std::move(inputs)) {}

  void setInterpolationMode(nv::InterpolationMode mode) noexcept override { set(mode_, mode); }
  nv::InterpolationMode getInterpolationMode() const noexcept override { return mode_; }
  void setAlignCorners(bool alignCorners) noexcept override { set(aligns_corners_, alignCorners); }
  bool getAlignCorners() const noexcept override { return aligns_corners_; }
  bool setSampleMode(nv::SampleMode mode) noexcept override;
  nv::SampleMode getSampleMode() const noexcept override { return outside_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  nv::InterpolationMode mode_ = nv::InterpolationMode::kLINEAR;
  nv::SampleMode outside_ = nv::SampleMode::kFILL;
  bool aligns_corners_ = false;
};

class ReverseSequenceLayer final : public LayerOf<nv::IReverseSequenceLayer, nv::apiv::VReverseSequenceLayer> {
 public:
  ReverseSequenceLayer(NetworkDefinition& network, std::vector<TensorView*> inputs)
      : LayerOf(network, nv::LayerType::kREVERSE_SEQUENCE, "ReverseSequence", std::move(inputs)) {}

  void setBatchAxis(int32_t batchAxis) noexcept override { set(batch_axis_, batchAxis); }
  int32_t getBatchAxis() const noexcept override { return batch_axis_; }
  void setSequenceAxis(int32_t sequenceAxis) noexcept override { set(sequence_axis_, sequenceAxis); }
  int32_t getSequenceAxis() const noexcept override { return sequence_axis_; }

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  int32_t batch_axis_ = 1, sequence_axis_ = 0;
};

// Input 3: IoU threshold, input 4: score threshold.
class NMSLayer final : public LayerOf<nv::INMSLayer, nv::apiv::VNMSLayer> {
 public:
  NMSLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, nv::DataType indices)
      : LayerOf(network, nv::LayerType::kNMS, "NMS", std::move(inputs)), indices_(indices) {}

  void setBoundingBoxFormat(nv::BoundingBoxFormat fmt) noexcept override { set(format_, fmt); }
  nv::BoundingBoxFormat getBoundingBoxFormat() const noexcept override { return format_; }
  void setTopKBoxLimit(int32_t limit) noexcept override { set(most_boxes_, limit); }
  int32_t getTopKBoxLimit() const noexcept override { return most_boxes_; }
  bool setIndicesType(nv::DataType type) noexcept override;
  nv::DataType getIndicesType() const noexcept override { return indices_; }

 private:
  int32_t max_inputs() const override { return 5; }
  size_t num_outputs() const override { return 2; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
  Result<> check_inputs() const;
  ir::Value* limited(LayerLowering& lowering, ir::Value* scores) const;

  nv::DataType indices_;
  nv::BoundingBoxFormat format_ = nv::BoundingBoxFormat::kCORNER_PAIRS;
  int32_t most_boxes_ = 5000;
};

// Input 3: positions, by which the caches are read.
class RotaryEmbeddingLayer final : public LayerOf<nv::IRotaryEmbeddingLayer, nv::apiv::VRotaryEmbeddingLayer> {
 public:
  RotaryEmbeddingLayer(NetworkDefinition& network, std::vector<TensorView*> inputs, bool interleaved, int32_t size)
      : LayerOf(network, nv::LayerType::kROTARY_EMBEDDING, "RotaryEmbedding", std::move(inputs)),
        interleaved_(interleaved),
        size_(size) {}

  void setInput(int32_t index, nv::ITensor& tensor) noexcept override { Layer::setInput(index, tensor); }
  void setInterleaved(bool interleaved) noexcept override { set(interleaved_, interleaved); }
  bool getInterleaved() const noexcept override { return interleaved_; }
  bool setRotaryEmbeddingDim(int32_t rotaryEmbeddingDim) noexcept override;
  int32_t getRotaryEmbeddingDim() const noexcept override { return size_; }

 private:
  int32_t max_inputs() const override { return 4; }
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;

  bool interleaved_;
  int32_t size_;  // 0 = the whole head
};

class RaggedSoftMaxLayer final : public LayerOf<nv::IRaggedSoftMaxLayer, nv::apiv::VRaggedSoftMaxLayer> {
 public:
  RaggedSoftMaxLayer(NetworkDefinition& network, std::vector<TensorView*> inputs)
      : LayerOf(network, nv::LayerType::kRAGGED_SOFTMAX, "RaggedSoftMax", std::move(inputs)) {}

 private:
  Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) override;
};

}  // namespace lathe::api
