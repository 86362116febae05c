// SPDX-License-Identifier: Apache-2.0
#include "lowering/few_channels.h"

#include "ops/windows.h"

namespace lathe {

bool has_few_channels(const ir::Node& node) {
  if (!node.is(OpKind::convolution) || node.attrs<ConvolutionAttrs>().groups != 1) return false;
  const auto channels = node.input(0)->shape()[1].as_constant();
  return channels && *channels <= kFewChannels;
}

bool gathers_pixels(const ir::Node& node, const BackendTraits& traits) {
  constexpr int64_t kMostSteps = 16;  // from a pixel whose window is computed to the others: a tile has room
  const ir::Value *x = node.input(0), *weights = has_few_channels(node) ? node.input(1) : nullptr;
  if (!weights || !weights->content() || x->rank() > 4) return false;
  const DType dtype = x->dtype();
  if (dtype != weights->dtype() || (dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::i8)) return false;
  const auto& attrs = node.attrs<ConvolutionAttrs>();
  int64_t window = kFewChannels, steps = 1;
  for (size_t i = 0; i + 2 < weights->shape().size(); ++i) {
    window *= weights->shape()[i + 2].as_constant().value_or(INT32_MAX);
    steps *= value_at(attrs.stride, i, 1) * value_at(attrs.dilation, i, 1);
  }
  return window <= traits.most_gathered_window && steps <= kMostSteps;
}

}  // namespace lathe
