// SPDX-License-Identifier: Apache-2.0
#include "lowering/layouts.h"

#include <algorithm>

#include "indexing/access.h"
#include "lowering/few_channels.h"
#include "lowering/moved_epilogue.h"
#include "passes/quantization.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;
using Costs = LayoutCosts::Costs;

constexpr double kNever = LayoutCosts::kNever;
constexpr std::array kLayouts = {Layout::linear, Layout::channels_last};

bool is_image(const Value* value) { return value && has_image_rank(value) && !value->content(); }

class LayoutTerms {
 public:
  LayoutTerms(const ir::Graph& graph, const BackendTraits& traits, const CostModel& model, LayoutCosts& costs)
      : traits_(traits), model_(model), costs_(costs) {
    for (const Value* input : graph.inputs())
      if (is_image(input)) costs_.add(input, {0, kNever}, "an input of the network");
    for (const auto& output : graph.outputs())
      if (is_image(output.value)) costs_.add(output.value, {0, copy_of(output.value)}, "an output of the network");
  }

  void add(const Region& region) {
    for (size_t i = 1; region.has_further_results() && i < region.outputs.size(); ++i)
      want_equal(region.result(), region.outputs[i], stride_of(region.outputs[i]), "written together by " + by(region));
    switch (region.kind) {
      case RegionKind::kernel:
        add_kernel(region);
        break;
      case RegionKind::pointwise:
        add_pointwise(region);
        break;
      case RegionKind::view:
        if (!add_view(region)) add_row_major(region);
        break;
      case RegionKind::movement:
        add_movement(region);
        break;
      case RegionKind::single:
        if (is_padded_by_copies(*region.root))
          want_equal(region.root->input(0), region.result(), stride_of(region.result()), "padded by " + by(region));
        else if (traits_.arithmetic.weighted_products && is_lookup(*region.root))
          want_equal(region.root->input(1), region.result(), stride_of(region.result()), "looked up by " + by(region));
        else
          add_row_major(region);
        break;
    }
  }

 private:
  double pass_of(const Value* value, double share = 1) const {  // one way between memory and the device
    return model_.microseconds({.bytes = share * model_.bytes_of(value)});
  }
  double copy_of(const Value* value) const {  // a step of its own
    return model_.microseconds({.bytes = 2 * model_.bytes_of(value), .steps = 1});
  }
  double scatter_of(const Value* value) const { return pass_of(value, 2); }  // of writing it where it has no neighbours
  double stride_of(const Value* value) const { return pass_of(value, 0.75); }  // of reading it across its layout

  static std::string by(const Region& region) { return region.root->name(); }

  void fix_linear(const Value* value, const std::string& reason) {
    if (is_image(value)) costs_.add(value, {0, kNever}, reason);
  }
  void want_linear(const Value* value, const std::string& reason) {
    if (is_image(value)) costs_.add(value, {0, copy_of(value)}, reason);
  }
  // Costs by the layouts of two values, one of which may have none.
  void add_pair(const Value* first, const Value* second, const std::array<Costs, 2>& costs, const std::string& reason) {
    if (is_image(first) && is_image(second))
      costs_.add(first, second, costs, reason);
    else if (is_image(first))
      costs_.add(first, {costs[0][0], costs[1][0]}, reason);
    else if (is_image(second))
      costs_.add(second, costs[0], reason);
  }
  void want_equal(const Value* first, const Value* second, double cost, const std::string& reason) {
    add_pair(first, second, {Costs{0, cost}, Costs{cost, 0}}, reason);
  }

  // A producer that reads in another order; nullptr = the input's layout is that of what is read.
  static const Expression* moved_producer_of(const Region& region, size_t i) {
    const Expression* producer = region.producer_of(i);
    return producer && producer->moves_elements(region.root->input(i)->shape()) ? producer : nullptr;
  }

  // What is read and written row-major, each by a copy where it lies otherwise.
  void add_row_major(const Region& region) {
    for (const Value* output : region.outputs) fix_linear(output, "written row-major by " + by(region));
    for (size_t i = 0; i < region.root->num_inputs(); ++i) {
      const bool any_layout = i == 0 && region.root->has_trait(kAnyLayout);
      if (!any_layout) want_linear(region.root->input(i), "read row-major by " + by(region));
    }
  }

  void add_kernel(const Region& region) {
    const Node& root = *region.root;
    const Value* result = region.result();
    const Value* x = region.input(0);
    const bool keeps_shape =
        root.has_trait(kReduction) && root.input(0)->shape() == result->shape() && !region.moves_elements();
    if (keeps_shape && moved_producer_of(region, 0))
      costs_.add(result, {0, 0}, by(region) + " writes any layout");
    else if (keeps_shape)
      want_equal(x, result, pass_of(x), by(region) + " writes the layout that it reads");
    else if (root.has_trait(kPixels) && !region.moves_elements())
      add_spatial(region);
    else if (region.moves_elements())
      add_moved_result(region);
    else
      for (const Value* output : region.outputs) fix_linear(output, "written row-major by " + by(region));
    for (size_t i = 0; i < root.num_inputs(); ++i) add_input(region, i);
    add_operands(region);
  }

  void add_spatial(const Region& region) {
    const Value* result = region.result();
    const bool moves_bytes = region.root->is(OpKind::resize) && is_byte_integer(result->dtype());
    if (is_image(result) && (moves_bytes || region.producer_of(0)) && is_byte_integer(region.input(0)->dtype()))
      costs_.add(result, {kNever, 0}, "written channels-last by " + by(region) + ", of levels");
    else if (traits_.windows_keep_layout && !is_convolution(region.root->info()))
      want_equal(region.input(0), result, stride_of(result),
                 "best written by " + by(region) + " in the layout that it reads");
    else if (is_image(result))
      costs_.add(result, {kNever, 0}, "written channels-last by " + by(region));
  }

  void add_input(const Region& region, size_t i) {
    const Node& root = *region.root;
    const Value* x = region.input(i);
    if (!is_image(x)) return;
    if (const Expression* producer = moved_producer_of(region, i)) return add_moved_input(region, *producer);
    if (const Expression* producer = region.producer_of(i))
      for (const Value* operand : producer->operands)
        if (operand != x && operand->shape() == x->shape())
          want_equal(operand, x, stride_of(operand), "read together by " + by(region));
    if (is_convolution(root.info()) && i == 0) {
      if (!reads_planes(region, traits_)) costs_.add(x, {copy_of(x), 0}, "read channels-last by " + by(region));
    } else if (root.has_trait(kPixels) && i == 0) {
      const bool has_levels = is_byte_integer(x->dtype()) && (region.producer_of(0) || root.is(OpKind::resize));
      costs_.add(x, {has_levels ? copy_of(x) : stride_of(x), 0}, "best read channels-last by " + by(region));
    } else if (!(root.has_trait(kReduction) && i == 0) && !(root.is(OpKind::matmul) && x->rank() == 3)) {
      want_linear(x, "read row-major by " + by(region));
    }
  }

  // The axis along which neighbours are neighbours in memory, if the value lies in the layout.
  std::optional<size_t> unit_axis(const IndexMap& map, const Value& value, Layout layout, const Space& space) const {
    const std::optional<Access> access = access_of(map, dense_strides(value.shape(), layout), space);
    if (!access) return std::nullopt;
    const Shape extents = space.extents();
    for (size_t axis = space.rank(); axis-- > 0;)
      if (access->strides[axis] == Expr(1) && extents[axis] != Expr(1)) return axis;
    return std::nullopt;
  }

  // Matrices are best read along their rows or columns.
  void add_moved_input(const Region& region, const Expression& producer) {
    const Value* x = producer.operands[0];
    const Space& space = producer.space;
    Costs costs{};
    for (const size_t l : {0, 1}) {
      const auto axis = unit_axis(producer.reads[0].map, *x, kLayouts[l], space);
      if (!axis || *axis + 2 < space.rank()) costs[l] = stride_of(x);
    }
    costs_.add(x, costs, "read in another order by " + by(region));
  }

  // What a kernel writes in runs where it does not write neighbours; products write no runs of split columns but
  // row-major ones.
  void add_moved_result(const Region& region) {
    const Value* result = region.result();
    if (!is_image(result)) return;
    const Space& space = region.expression.space;
    const std::vector<size_t> axes_of_dims = space.reassociation();
    const size_t dim = contiguous_dim(*region.root);
    size_t end = 0;  // of the contiguous dimension's axes
    for (size_t d = 0; d <= dim && d < axes_of_dims.size(); ++d) end += axes_of_dims[d];
    // Convolutions compute their channels in the order in which these lie side by side.
    const size_t first = is_convolution(region.root->info()) ? end - axes_of_dims[dim] : end - 1;
    Costs costs{};
    for (const size_t l : {0, 1}) {
      const auto axis = unit_axis(region.written, *result, kLayouts[l], space);
      if (!axis || *axis < first || *axis >= end) costs[l] = scatter_of(result);
    }
    if (is_convolution(region.root->info()) && costs[1] == 0) costs[0] = scatter_of(result);  // in planes
    const bool has_runs = region.root->is(OpKind::matmul) && axes_of_dims.back() > 1;
    if (has_runs || region.root->is(OpKind::attention)) costs[1] = kNever;
    costs_.add(result, costs, "written in another order by " + by(region));
    if (!has_wide_pixels(result)) costs_.add(result, {0, pass_of(result)}, "few channels");
  }

  bool has_wide_pixels(const Value* value) const {
    const auto channels = value->shape()[1].as_constant();
    return channels && *channels >= std::max<int64_t>(traits_.least_pixel, 2);
  }

  void add_pointwise(const Region& region) {
    const Value* result = region.result();
    if (is_widened_image(region, traits_) && traits_.fuses_movement) {
      costs_.add(result, {kNever, 0}, "written with room for whole pixels");
    } else {
      if (is_image(result) && !has_wide_pixels(result)) costs_.add(result, {0, pass_of(result, 0.5)}, "few channels");
      if (add_view(region)) return;
    }
    add_operands(region);
  }

  // Operands of the region's program that are contiguous along another axis than its result. Where all of them are, one
  // of the tensors is moved across its layout: the result.
  void add_operands(const Region& region) {
    for (const Region& box : region.boxes) add_operands(box);
    if (!region.boxes.empty()) return;
    const Value* result = region.result();
    const auto& [space, program, operands, reads, normalization, paged_dim] = region.expression;
    const auto is_whole = [&](const Value* operand) { return pass_of(operand) >= pass_of(result); };
    const auto whole = static_cast<double>(std::count_if(operands.begin(), operands.end(), is_whole));
    for (size_t i = 0; i < operands.size(); ++i) {
      const Value* operand = operands[i];
      if (operand->content() || (!is_image(operand) && !is_image(result))) continue;
      const IndexMap& map = reads[i].map;
      if (static_cast<int>(map.index.size()) != operand->rank()) continue;  // a bias
      std::array<Costs, 2> costs{};
      for (const size_t from : {0, 1})
        for (const size_t to : {0, 1}) {
          const auto read = unit_axis(map, *operand, kLayouts[from], space);
          const auto written = unit_axis(region.written, *result, kLayouts[to], space);
          costs[from][to] =
              read == written ? 0 : std::min(stride_of(operand), stride_of(result)) / std::max(whole, 1.0);
        }
      add_pair(operand, result, costs, "read elementwise by " + by(region));
    }
  }

  // Same elements in an order in which the memory of what is read may already hold them. False = the region is no such.
  bool add_view(const Region& region) {
    if (!traits_.fuses_movement || !region.only_permutes()) return false;
    const Value* base = region.expression.operands[0];
    if (base->content()) return false;
    const Value* result = region.result();
    std::array<Costs, 2> costs{};
    for (const size_t from : {0, 1})
      for (const size_t to : {0, 1}) {
        const auto strides = region.permuted_strides(dense_strides(base->shape(), kLayouts[from]));
        const bool is_free = strides && is_dense(result->shape(), *strides, kLayouts[to]);
        // A reshape that copies writes row-major.
        const bool copies = region.kind != RegionKind::view || to == 0;
        costs[from][to] = is_free ? 0 : copies ? copy_of(result) : kNever;
      }
    add_pair(base, result, costs, "moved by " + by(region));
    return true;
  }

  void add_movement(const Region& region) {
    const Node& root = *region.root;
    if (root.is(OpKind::concat)) {
      for (const Value* part : root.inputs())
        if (is_image(part)) want_equal(part, region.result(), copy_of(part), "part of " + by(region));
    } else if (root.has_trait(kCuts)) {
      for (const Value* output : region.outputs)
        if (is_image(root.input(0)) && root.input(0)->rank() == output->rank())
          want_equal(root.input(0), output, kNever, "cut by " + by(region));
        else
          fix_linear(output, "cut by " + by(region));
    } else if (root.is(OpKind::transpose) && is_widened_image(region, traits_) && traits_.fuses_movement) {
      costs_.add(region.result(), {kNever, 0}, "written with room for whole pixels");
    } else if (!root.is(OpKind::transpose) || !add_view(region)) {
      for (const Value* output : region.outputs) fix_linear(output, "written row-major by " + by(region));
    }
  }

  const BackendTraits& traits_;
  const CostModel& model_;
  LayoutCosts& costs_;
};

}  // namespace

bool has_image_rank(const Value* value) { return value->rank() >= 3 && value->rank() <= 5; }

bool reads_planes(const Region& region, const BackendTraits& traits) {
  if (traits.least_pixel > 0) return gathers_pixels(*region.root, traits);
  return has_few_channels(*region.root) && !is_byte_integer(region.input(0)->dtype());
}

bool is_padded_by_copies(const ir::Node& node) {
  if (!node.is(OpKind::pad) || node.attrs<PadAttrs>().mode != PadMode::constant || !node.output()->has_single_use() ||
      !is_byte_integer(node.output()->dtype()))
    return false;
  const ir::Use& use = node.output()->uses()[0];
  return use.node->is(OpKind::convolution) && use.index == 0;
}

bool is_widened_image(const Region& region, const BackendTraits& traits) {
  const Value* value = region.result();
  const bool is_written_anywhere = region.kind == RegionKind::pointwise ||
                                   (region.kind == RegionKind::movement && region.root->is(OpKind::transpose));
  if (!is_written_anywhere || !has_image_rank(value) || !value->has_single_use()) return false;
  const auto channels = value->shape()[1].as_constant();
  const ir::Use& use = value->uses()[0];
  return channels && *channels >= 2 && *channels < traits.least_pixel && use.index == 0 &&
         use.node->is(OpKind::convolution) && use.node->attrs<ConvolutionAttrs>().groups == 1 &&
         !gathers_pixels(*use.node, traits);
}

LayoutCosts assign_layouts(const ir::Graph& graph, const std::vector<Region>& regions, const BackendTraits& traits,
                           const CostModel& model) {
  LayoutCosts costs;
  LayoutTerms terms(graph, traits, model, costs);
  for (const Region& region : regions) terms.add(region);
  costs.solve();
  return costs;
}

}  // namespace lathe
