// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv_shape_tactic.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/padding_rule_tactic.h"
#include "ops/rules.h"
#include "ops/windows.h"

namespace lathe {
namespace {

std::optional<std::string> refuse_rank(const Operand& x) {
  if (x.rank() >= 3 && x.rank() <= 5) return std::nullopt;
  return fmt::format("{} spatial dimensions, 1 to 3 are handled", x.rank() - 2);
}

}  // namespace

std::optional<std::string> read_conv_shape(const Problem& problem, ConvShape& out) {
  if (auto reason = refuse_rank(problem.inputs[0])) return reason;
  const auto& attrs = problem.attrs<ConvolutionAttrs>();
  const Operand& w = problem.inputs[1];
  out.spatial = problem.inputs[0].rank() - 2;
  out.groups = attrs.groups;
  out.padding_rule = rule_of(attrs.padding_mode);
  out.in_channels = w.opt_dims[1] * attrs.groups;
  out.out_channels = w.opt_dims[0];
  const auto lead = static_cast<size_t>(3 - out.spatial);
  for (size_t i = 0; i < static_cast<size_t>(out.spatial); ++i) {
    const std::optional<int64_t> extent = w.dims[2 + i].as_constant();
    if (!extent) return "the kernel's extents are not known while building";
    out.kernel[lead + i] = *extent;
    out.stride[lead + i] = value_at(attrs.stride, i, 1);
    out.dilation[lead + i] = value_at(attrs.dilation, i, 1);
    out.pad[lead + i] = value_at(attrs.pads_begin, i, 0);
  }
  return std::nullopt;
}

std::optional<std::string> resolve_conv_shape(const Problem& problem, ConvShape& out) {
  if (auto reason = read_conv_shape(problem, out)) return reason;
  if (out.padding_rule == PaddingRule::given) return std::nullopt;
  for (size_t i = 0, d = static_cast<size_t>(3 - out.spatial); d < 3; ++i, ++d) {
    const Window window = window_rule(problem.inputs[0].dims[2 + i], out.kernel[d], out.stride[d], out.dilation[d], 0,
                                      0, problem.attrs<ConvolutionAttrs>().padding_mode);
    const std::optional<int64_t> pad = window.pad_begin.as_constant();
    if (!pad) return "SAME padding depends on a dynamic dimension";
    out.pad[d] = *pad;
  }
  out.padding_rule = PaddingRule::given;
  return std::nullopt;
}

std::optional<std::string> resolve_deconv_shape(const Problem& problem, ConvShape& out) {
  if (auto reason = refuse_rank(problem.inputs[0])) return reason;
  const auto& attrs = problem.attrs<DeconvolutionAttrs>();
  const Operand &x = problem.inputs[0], &w = problem.inputs[1];
  out.spatial = x.rank() - 2;
  out.groups = attrs.groups;
  out.in_channels = w.opt_dims[0];
  out.out_channels = w.opt_dims[1] * attrs.groups;
  const bool given = attrs.padding_mode == PaddingMode::explicit_round_down && attrs.output_shape.empty();
  for (size_t i = 0, d = static_cast<size_t>(3 - out.spatial); d < 3; ++i, ++d) {
    out.kernel[d] = w.opt_dims[2 + i];
    out.stride[d] = value_at(attrs.stride, i, 1);
    out.dilation[d] = value_at(attrs.dilation, i, 1);
    out.pad[d] = value_at(attrs.pads_begin, i, 0);
    if (given) continue;
    const auto from = x.dims[2 + i].as_constant(), to = problem.outputs[0].dims[2 + i].as_constant();
    if (!from || !to) return "the padding depends on a dynamic dimension";
    const int64_t full =
        (*from - 1) * out.stride[d] + (out.kernel[d] - 1) * out.dilation[d] + 1 + value_at(attrs.output_padding, i, 0);
    out.pad[d] = share_of(rule_of(attrs.padding_mode), full - *to);
  }
  return std::nullopt;
}

}  // namespace lathe
