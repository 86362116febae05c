// SPDX-License-Identifier: Apache-2.0
#include "size_stream/encoder.h"

#include <cmath>
#include <deque>
#include <random>
#include <vector>

#include "base/scalars.h"
#include "lathe.h"

namespace lathe::bench {
namespace {

namespace nv = nvinfer1;

class Encoder {
 public:
  Encoder(nv::INetworkDefinition& network, const EncoderSizes& sizes, bool is_half)
      : network_(network), sizes_(sizes), is_half_(is_half) {}

  void write() {
    nv::ITensor* x = network_.addInput("x", type(), nv::Dims3(1, -1, sizes_.width));
    for (int64_t i = 0; i < sizes_.layers; ++i) x = layer(x);
    x->setName("y");
    network_.markOutput(*x);
  }

 private:
  nv::DataType type() const { return is_half_ ? nv::DataType::kHALF : nv::DataType::kFLOAT; }

  // Normal numbers around `mean`.
  nv::ITensor* weight(const nv::Dims& dims, float deviation, float mean = 0) {
    int64_t count = 1;
    for (int i = 0; i < dims.nbDims; ++i) count *= dims.d[i];
    std::vector<std::byte>& bytes = weights_.emplace_back(static_cast<size_t>(count) * (is_half_ ? 2 : 4));
    std::normal_distribution<float> normal(mean, deviation);
    for (int64_t i = 0; i < count; ++i) {
      const float value = normal(random_);
      if (is_half_)
        reinterpret_cast<_Float16*>(bytes.data())[i] = static_cast<_Float16>(value);
      else
        reinterpret_cast<float*>(bytes.data())[i] = value;
    }
    return network_.addConstant(dims, {type(), bytes.data(), count})->getOutput(0);
  }
  nv::ITensor* sum(nv::ITensor* a, nv::ITensor* b) {
    return network_.addElementWise(*a, *b, nv::ElementWiseOperation::kSUM)->getOutput(0);
  }
  nv::ITensor* product(nv::ITensor* a, nv::ITensor* b, nv::MatrixOperation second = nv::MatrixOperation::kNONE) {
    return network_.addMatrixMultiply(*a, nv::MatrixOperation::kNONE, *b, second)->getOutput(0);
  }
  nv::ITensor* linear(nv::ITensor* x, int64_t in, int64_t out) {
    nv::ITensor* w = weight(nv::Dims3(1, in, out), 1 / std::sqrt(static_cast<float>(in)));
    return sum(product(x, w), weight(nv::Dims3(1, 1, out), 0.02F));
  }
  nv::ITensor* normalized(nv::ITensor* x) {
    const nv::Dims3 dims(1, 1, sizes_.width);
    return network_.addNormalizationV2(*x, *weight(dims, 0.02F, 1), *weight(dims, 0.02F), 1U << 2)->getOutput(0);
  }
  // [1, n, width] as [1, heads, n, width / heads], and back.
  nv::ITensor* heads(nv::ITensor* x) {
    nv::IShuffleLayer* shuffle = network_.addShuffle(*x);
    shuffle->setReshapeDimensions(nv::Dims4(0, 0, sizes_.heads, sizes_.width / sizes_.heads));
    shuffle->setSecondTranspose({{0, 2, 1, 3}});
    return shuffle->getOutput(0);
  }
  nv::ITensor* merged(nv::ITensor* x) {
    nv::IShuffleLayer* shuffle = network_.addShuffle(*x);
    shuffle->setFirstTranspose({{0, 2, 1, 3}});
    shuffle->setReshapeDimensions(nv::Dims3(0, 0, sizes_.width));
    return shuffle->getOutput(0);
  }
  nv::ITensor* attention(nv::ITensor* x) {
    const int64_t width = sizes_.width;
    nv::ITensor *q = heads(linear(x, width, width)), *k = heads(linear(x, width, width)),
                *v = heads(linear(x, width, width));
    const float scale = 1 / std::sqrt(static_cast<float>(width / sizes_.heads));
    nv::ITensor* scores = network_
                              .addElementWise(*product(q, k, nv::MatrixOperation::kTRANSPOSE),
                                              *weight(nv::Dims4(1, 1, 1, 1), 0, scale), nv::ElementWiseOperation::kPROD)
                              ->getOutput(0);
    nv::ISoftMaxLayer* softmax = network_.addSoftMax(*scores);
    softmax->setAxes(1U << 3);
    return linear(merged(product(softmax->getOutput(0), v)), width, width);
  }
  nv::ITensor* layer(nv::ITensor* x) {
    x = normalized(sum(x, attention(x)));
    nv::ITensor* hidden =
        network_.addActivation(*linear(x, sizes_.width, sizes_.hidden), nv::ActivationType::kGELU_ERF)->getOutput(0);
    return normalized(sum(x, linear(hidden, sizes_.hidden, sizes_.width)));
  }

  nv::INetworkDefinition& network_;
  const EncoderSizes sizes_;
  const bool is_half_;
  std::mt19937 random_;
  std::deque<std::vector<std::byte>> weights_;
};

}  // namespace

std::unique_ptr<nv::IHostMemory> build_encoder(const EncoderSizes& sizes, const std::string& target, double seconds,
                                               nv::ILogger& log) {
  const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(log));
  const std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
  Encoder encoder(*network, sizes, target.starts_with("cuda"));
  encoder.write();
  const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
  nv::IOptimizationProfile* profile = builder->createOptimizationProfile();
  profile->setDimensions("x", nv::OptProfileSelector::kMIN, nv::Dims3(1, sizes.least, sizes.width));
  profile->setDimensions("x", nv::OptProfileSelector::kOPT, nv::Dims3(1, sizes.usual, sizes.width));
  profile->setDimensions("x", nv::OptProfileSelector::kMAX, nv::Dims3(1, sizes.most, sizes.width));
  config->addOptimizationProfile(profile);
  if (!setTarget(*config, target.c_str()) || !setBuildBudget(*config, seconds)) return nullptr;
  return std::unique_ptr<nv::IHostMemory>(builder->buildSerializedNetwork(*network, *config));
}

}  // namespace lathe::bench
