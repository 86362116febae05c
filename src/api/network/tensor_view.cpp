// SPDX-License-Identifier: Apache-2.0
#include "api/network/tensor_view.h"

#include <algorithm>
#include <bit>

#include "api/network/network.h"

namespace lathe::api {
namespace {

// An input is a shape when some shape depends on its content. Shape rules take content for sizes where it cannot be
// negative; profiles will say that, so that it is assumed here.
Result<bool> is_shape_input(const ir::Graph& network, size_t input) {
  ir::Graph graph = network.clone();
  const auto is_element = [&](SymbolId id) {
    const Symbol& symbol = graph.symbols()[id];
    return symbol.source == SymbolSource::input_value && symbol.tensor == input;
  };
  for (SymbolId id = 0; id < graph.symbols().size(); ++id)
    if (is_element(id)) graph.set_range(id, {0, Range::kUnbounded});
  LATHE_TRY(graph.infer_all());
  std::vector<SymbolId> used;
  for (const auto& node : graph.nodes())
    for (size_t i = 0; i < node->num_outputs(); ++i)
      for (const Expr& dim : node->output(i)->shape()) dim.collect_symbols(used);
  return std::any_of(used.begin(), used.end(), is_element);
}

// Whether the content of a value that is known as sizes is computed with, or given to the application.
bool is_read_as_data(const ir::Value& value) {
  if (value.is_graph_output()) return true;
  return std::ranges::any_of(value.uses(), [](const ir::Use& use) {
    if (says_sizes(use.node->info(), use.index)) return false;
    for (size_t i = 0; i < use.node->num_outputs(); ++i)
      if (!use.node->output(i)->elements() || is_read_as_data(*use.node->output(i))) return true;
    return false;
  });
}

}  // namespace

Result<> TensorView::resolve() const {
  LATHE_TRY(network_.settle());
  return producer_ && producer_->error() ? Result<>(fail(*producer_->error())) : Result<>();
}

void TensorView::setName(const char* name) noexcept {
  guarded(network_.entry(), "ITensor::setName", [&]() -> Result<> {
    LATHE_ASSIGN(std::string text, to_string(name, "tensor name"));
    network_.rename_tensor(*this, name_, std::move(text));
    return {};
  });
}

// Dims of an input: numbers stay, each -1 becomes the symbol of its dimension name, or one of its own.
Result<> TensorView::apply_input_type() {
  ir::Graph& graph = network_.graph();
  Shape shape = value_->shape();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is_constant()) continue;
    const std::string& given = i < nv::Dims::MAX_DIMS ? dimension_names_[i] : name_;
    shape[i] = graph.dim_symbol(given.empty() || i >= nv::Dims::MAX_DIMS ? fmt::format("{}.{}", name_, i) : given);
  }
  const DType dtype = value_->dtype();
  graph.set_input_type(value_, {dtype, std::move(shape)});
  if (!value_->uses().empty()) network_.moved(this, true);
  return {};
}

void TensorView::setDimensions(const nv::Dims& dimensions) noexcept {
  guarded(network_.entry(), "ITensor::setDimensions", [&]() -> Result<> {
    if (!isNetworkInput())
      return fail(ErrorCode::invalid_argument, "tensor '{}' is no network input; its dims are computed", name_);
    if (!is_valid(dimensions)) return fail(ErrorCode::invalid_argument, "dims of input '{}' are invalid", name_);
    LATHE_ASSIGN(const Dims dims, to_dims(dimensions));
    Shape shape;
    for (size_t i = 0; i < dims.size(); ++i)
      shape.push_back(dims[i] >= 0 ? Expr(dims[i]) : network_.graph().dim_symbol(fmt::format("{}.{}", name_, i)));
    const DType dtype = value_->dtype();
    network_.graph().set_input_type(value_, {dtype, std::move(shape)});
    return apply_input_type();
  });
}

nv::Dims TensorView::getDimensions() const noexcept {
  return guarded(network_.entry(Exclusive::Call::looks), "ITensor::getDimensions", invalid_dims(),
                 [&]() -> Result<nv::Dims> {
                   LATHE_TRY(resolve());
                   return to_nv(value_->shape());
                 });
}

nv::DataType TensorView::getType() const noexcept {
  return guarded(network_.entry(Exclusive::Call::looks), "ITensor::getType", nv::DataType::kFLOAT,
                 [&]() -> Result<nv::DataType> {
                   LATHE_TRY(resolve());
                   return to_nv(bound_type());
                 });
}

bool TensorView::isShapeTensor() const noexcept {
  return guarded(network_.entry(Exclusive::Call::looks), "ITensor::isShapeTensor", false, [&]() -> Result<bool> {
    LATHE_TRY(resolve());
    if (!value_->elements()) return false;
    if (producer_) return true;
    return is_shape_input(network_.graph(), value_->index());
  });
}

bool TensorView::isExecutionTensor() const noexcept {
  return guarded(network_.entry(Exclusive::Call::looks), "ITensor::isExecutionTensor", false, [&]() -> Result<bool> {
    LATHE_TRY(resolve());
    return !value_->elements() || is_read_as_data(*value_);
  });
}

void TensorView::setBroadcastAcrossBatch(bool broadcastAcrossBatch) noexcept {
  guarded(network_.entry(), "ITensor::setBroadcastAcrossBatch", [&]() -> Result<> {
    return broadcastAcrossBatch ? network_.consult(SettingId::ITensor_setBroadcastAcrossBatch) : Result<>();
  });
}

void TensorView::setLocation(nv::TensorLocation location) noexcept {
  guarded(network_.entry(), "ITensor::setLocation", [&]() -> Result<> {
    LATHE_TRY(network_.consult(location));
    location_ = location;
    return {};
  });
}

void TensorView::setAllowedFormats(nv::TensorFormats formats) noexcept {
  guarded(network_.entry(), "ITensor::setAllowedFormats", [&]() -> Result<> {
    constexpr nv::TensorFormats kKnown = bit_of(nv::EnumMax<nv::TensorFormat>()) - 1;
    if (formats == 0 || (formats & ~kKnown) != 0)
      return fail(ErrorCode::invalid_argument, "formats {:#x}: at least one is needed, and {:#x} are known", formats,
                  kKnown);
    // The first format that is allowed stands for all when row-major is not among them.
    const auto first = static_cast<nv::TensorFormat>(std::countr_zero(formats));
    if (first != nv::TensorFormat::kLINEAR) LATHE_TRY(network_.consult(first));
    formats_ = formats;
    return {};
  });
}

void TensorView::setDimensionName(int32_t index, const char* name) noexcept {
  guarded(network_.entry(), "ITensor::setDimensionName", [&]() -> Result<> {
    if (!isNetworkInput() || index < 0 || index >= std::min<int32_t>(value_->rank(), nv::Dims::MAX_DIMS))
      return fail(ErrorCode::invalid_argument, "only dimensions 0 to {} of network inputs can be named, not {}",
                  value_->rank() - 1, index);
    std::string text;
    if (name) {
      LATHE_ASSIGN(text, to_string(name, "dimension name"));
    }
    dimension_names_[index] = std::move(text);
    return apply_input_type();
  });
}

const char* TensorView::getDimensionName(int32_t index) const noexcept {
  return guarded(network_.entry(Exclusive::Call::looks), "ITensor::getDimensionName", static_cast<const char*>(nullptr),
                 [&]() -> Result<const char*> {
                   LATHE_TRY(resolve());
                   if (index < 0 || index >= std::min<int32_t>(value_->rank(), nv::Dims::MAX_DIMS))
                     return fail(ErrorCode::invalid_argument, "tensor '{}' has no dimension {}: its rank is {}", name_,
                                 index, value_->rank());
                   return dimension_names_[index].empty() ? nullptr : dimension_names_[index].c_str();
                 });
}

}  // namespace lathe::api
