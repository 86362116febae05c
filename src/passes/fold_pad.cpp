// SPDX-License-Identifier: Apache-2.0
// Padding before a convolution or pooling becomes the padding of that op.
#include <limits>

#include "passes/match.h"
#include "passes/padding.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

// What a pad node adds when it adds constants around the spatial axes only, which are those that are left.
std::optional<ConstantPadding> spatial_padding_of(const ir::Node* pad) {
  std::optional<ConstantPadding> padding = constant_padding_of(pad);
  if (!padding || padding->begin.size() < 3) return std::nullopt;
  for (Ints* pads : {&padding->begin, &padding->end}) {
    if ((*pads)[0] != 0 || (*pads)[1] != 0) return std::nullopt;
    pads->erase(pads->begin(), pads->begin() + 2);
  }
  return padding;
}

Ints sum(const Ints& pads, const Ints& more) {
  Ints out = more;
  for (size_t i = 0; i < pads.size(); ++i) out[i] += pads[i];
  return out;
}

bool all_zero(const Ints& values) {
  for (int64_t v : values)
    if (v != 0) return false;
  return true;
}

Result<bool> into_convolution(Rewrite& r) {
  ConvolutionAttrs attrs = r.node->attrs<ConvolutionAttrs>();
  const ir::Node* pad = made_by(r.input(0), OpKind::pad);
  const std::optional<ConstantPadding> padding = spatial_padding_of(pad);
  if (!padding || padding->value != 0 || attrs.padding_mode != PaddingMode::explicit_round_down) return false;
  attrs.pads_begin = sum(attrs.pads_begin, padding->begin);
  attrs.pads_end = sum(attrs.pads_end, padding->end);
  std::vector<ir::Value*> inputs = r.node->inputs();
  inputs[0] = pad->input(0);
  r.absorb(pad);
  return r.finish(r.add(attrs, std::move(inputs)));
}

bool is_non_negative(const ir::Value* value) {
  const ir::Node* node = value->producer();
  if (is(node, ActivationOp::clip)) return node->attrs<ActivationAttrs>().alpha >= 0;
  return is(node, ActivationOp::relu) || is(node, ActivationOp::sigmoid) || is(node, UnaryOp::abs) ||
         is(node, UnaryOp::exp);
}

// Whether max pooling may leave the padding out: it never wins, and no window consists of it alone.
bool never_wins(const ConstantPadding& padding, const PoolingAttrs& attrs, const ir::Value* x) {
  if (padding.value > -std::numeric_limits<float>::max() && !(padding.value == 0 && is_non_negative(x))) return false;
  for (size_t i = 0; i < padding.begin.size(); ++i) {
    const int64_t begin = padding.begin[i] + (attrs.pads_begin.empty() ? 0 : attrs.pads_begin[i]);
    const int64_t end = padding.end[i] + (attrs.pads_end.empty() ? 0 : attrs.pads_end[i]);
    if (begin >= attrs.window[i] || end >= attrs.window[i]) return false;
    if (!attrs.dilation.empty() && attrs.dilation[i] != 1) return false;
  }
  return true;
}

Result<bool> into_pooling(Rewrite& r) {
  PoolingAttrs attrs = r.node->attrs<PoolingAttrs>();
  const ir::Node* pad = made_by(r.input(0), OpKind::pad);
  const std::optional<ConstantPadding> padding = spatial_padding_of(pad);
  if (!padding || r.node->num_outputs() > 1 || attrs.padding_mode != PaddingMode::explicit_round_down) return false;
  if (attrs.op == PoolingOp::max) {
    if (!never_wins(*padding, attrs, pad->input(0))) return false;
  } else if (padding->value != 0) {
    return false;
  } else if (attrs.op == PoolingOp::average) {
    // The pad's zeros count in the mean; the pooling's own would have to as well.
    if (!attrs.count_include_pad && !(all_zero(attrs.pads_begin) && all_zero(attrs.pads_end))) return false;
    attrs.count_include_pad = true;
  }
  attrs.pads_begin = sum(attrs.pads_begin, padding->begin);
  attrs.pads_end = sum(attrs.pads_end, padding->end);
  r.absorb(pad);
  return r.finish(r.add(attrs, {pad->input(0)}));
}

}  // namespace

Result<bool> fold_pad(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"conv(pad(x, p, 0), w) = conv{pads + p}(x, w)", OpKind::convolution, into_convolution},
      {"pool(pad(x, p)) = pool{pads + p}(x)", OpKind::pooling, into_pooling},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
