// SPDX-License-Identifier: Apache-2.0
#include "api/network/enums.h"

namespace lathe::api {
namespace {

template <class Theirs, class Ours>
struct Row {
  Theirs theirs;
  Ours ours;
};

template <class Theirs, class Ours, size_t kRows>
Result<Ours> find_ours(const Row<Theirs, Ours> (&table)[kRows], Theirs value, const char* what) {
  for (const auto& row : table)
    if (row.theirs == value) return row.ours;
  return fail(ErrorCode::invalid_argument, "{} {} does not exist", what, static_cast<int>(value));
}

template <class Theirs, class Ours, size_t kRows>
std::optional<Theirs> find_theirs(const Row<Theirs, Ours> (&table)[kRows], Ours value) {
  for (const auto& row : table)
    if (row.ours == value) return row.theirs;
  return std::nullopt;
}

constexpr Row<nv::UnaryOperation, UnaryOp> kUnary[] = {
    {nv::UnaryOperation::kEXP, UnaryOp::exp},         {nv::UnaryOperation::kLOG, UnaryOp::log},
    {nv::UnaryOperation::kSQRT, UnaryOp::sqrt},       {nv::UnaryOperation::kRECIP, UnaryOp::recip},
    {nv::UnaryOperation::kABS, UnaryOp::abs},         {nv::UnaryOperation::kNEG, UnaryOp::neg},
    {nv::UnaryOperation::kSIN, UnaryOp::sin},         {nv::UnaryOperation::kCOS, UnaryOp::cos},
    {nv::UnaryOperation::kTAN, UnaryOp::tan},         {nv::UnaryOperation::kSINH, UnaryOp::sinh},
    {nv::UnaryOperation::kCOSH, UnaryOp::cosh},       {nv::UnaryOperation::kASIN, UnaryOp::asin},
    {nv::UnaryOperation::kACOS, UnaryOp::acos},       {nv::UnaryOperation::kATAN, UnaryOp::atan},
    {nv::UnaryOperation::kASINH, UnaryOp::asinh},     {nv::UnaryOperation::kACOSH, UnaryOp::acosh},
    {nv::UnaryOperation::kATANH, UnaryOp::atanh},     {nv::UnaryOperation::kCEIL, UnaryOp::ceil},
    {nv::UnaryOperation::kFLOOR, UnaryOp::floor},     {nv::UnaryOperation::kERF, UnaryOp::erf},
    {nv::UnaryOperation::kNOT, UnaryOp::logical_not}, {nv::UnaryOperation::kSIGN, UnaryOp::sign},
    {nv::UnaryOperation::kROUND, UnaryOp::round},     {nv::UnaryOperation::kISINF, UnaryOp::is_inf},
    {nv::UnaryOperation::kISNAN, UnaryOp::is_nan},
};
constexpr Row<nv::ActivationType, ActivationOp> kActivation[] = {
    {nv::ActivationType::kRELU, ActivationOp::relu},
    {nv::ActivationType::kSIGMOID, ActivationOp::sigmoid},
    {nv::ActivationType::kTANH, ActivationOp::tanh},
    {nv::ActivationType::kLEAKY_RELU, ActivationOp::leaky_relu},
    {nv::ActivationType::kELU, ActivationOp::elu},
    {nv::ActivationType::kSELU, ActivationOp::selu},
    {nv::ActivationType::kSOFTSIGN, ActivationOp::softsign},
    {nv::ActivationType::kSOFTPLUS, ActivationOp::softplus},
    {nv::ActivationType::kCLIP, ActivationOp::clip},
    {nv::ActivationType::kHARD_SIGMOID, ActivationOp::hard_sigmoid},
    {nv::ActivationType::kSCALED_TANH, ActivationOp::scaled_tanh},
    {nv::ActivationType::kTHRESHOLDED_RELU, ActivationOp::thresholded_relu},
    {nv::ActivationType::kGELU_ERF, ActivationOp::gelu_erf},
    {nv::ActivationType::kGELU_TANH, ActivationOp::gelu_tanh},
};
constexpr Row<nv::ElementWiseOperation, ElementwiseOp> kElementwise[] = {
    {nv::ElementWiseOperation::kSUM, ElementwiseOp::add},
    {nv::ElementWiseOperation::kPROD, ElementwiseOp::mul},
    {nv::ElementWiseOperation::kMAX, ElementwiseOp::max},
    {nv::ElementWiseOperation::kMIN, ElementwiseOp::min},
    {nv::ElementWiseOperation::kSUB, ElementwiseOp::sub},
    {nv::ElementWiseOperation::kDIV, ElementwiseOp::div},
    {nv::ElementWiseOperation::kPOW, ElementwiseOp::pow},
    {nv::ElementWiseOperation::kFLOOR_DIV, ElementwiseOp::floor_div},
    {nv::ElementWiseOperation::kAND, ElementwiseOp::logical_and},
    {nv::ElementWiseOperation::kOR, ElementwiseOp::logical_or},
    {nv::ElementWiseOperation::kXOR, ElementwiseOp::logical_xor},
    {nv::ElementWiseOperation::kEQUAL, ElementwiseOp::equal},
    {nv::ElementWiseOperation::kGREATER, ElementwiseOp::greater},
    {nv::ElementWiseOperation::kLESS, ElementwiseOp::less},
};
constexpr Row<nv::ReduceOperation, ReduceOp> kReduce[] = {
    {nv::ReduceOperation::kSUM, ReduceOp::sum},  {nv::ReduceOperation::kPROD, ReduceOp::prod},
    {nv::ReduceOperation::kMAX, ReduceOp::max},  {nv::ReduceOperation::kMIN, ReduceOp::min},
    {nv::ReduceOperation::kAVG, ReduceOp::mean},
};
constexpr Row<nv::PaddingMode, PaddingMode> kPadding[] = {
    {nv::PaddingMode::kEXPLICIT_ROUND_DOWN, PaddingMode::explicit_round_down},
    {nv::PaddingMode::kEXPLICIT_ROUND_UP, PaddingMode::explicit_round_up},
    {nv::PaddingMode::kSAME_UPPER, PaddingMode::same_upper},
    {nv::PaddingMode::kSAME_LOWER, PaddingMode::same_lower},
};
constexpr Row<nv::InterpolationMode, ResizeMode> kResize[] = {
    {nv::InterpolationMode::kNEAREST, ResizeMode::nearest},
    {nv::InterpolationMode::kLINEAR, ResizeMode::linear},
    {nv::InterpolationMode::kCUBIC, ResizeMode::cubic},
};
constexpr Row<nv::ResizeCoordinateTransformation, CoordinateMode> kCoordinates[] = {
    {nv::ResizeCoordinateTransformation::kALIGN_CORNERS, CoordinateMode::align_corners},
    {nv::ResizeCoordinateTransformation::kASYMMETRIC, CoordinateMode::asymmetric},
    {nv::ResizeCoordinateTransformation::kHALF_PIXEL, CoordinateMode::half_pixel},
};
constexpr Row<nv::ResizeRoundMode, NearestMode> kRounding[] = {
    {nv::ResizeRoundMode::kHALF_UP, NearestMode::round_prefer_ceil},
    {nv::ResizeRoundMode::kHALF_DOWN, NearestMode::round_prefer_floor},
    {nv::ResizeRoundMode::kFLOOR, NearestMode::floor},
    {nv::ResizeRoundMode::kCEIL, NearestMode::ceil},
};

}  // namespace

Result<UnaryOp> to_ours(nv::UnaryOperation value) { return find_ours(kUnary, value, "operation"); }
Result<ActivationOp> to_ours(nv::ActivationType value) { return find_ours(kActivation, value, "operation"); }
Result<ElementwiseOp> to_ours(nv::ElementWiseOperation value) { return find_ours(kElementwise, value, "operation"); }
Result<ReduceOp> to_ours(nv::ReduceOperation value) { return find_ours(kReduce, value, "reduction"); }
Result<PaddingMode> to_ours(nv::PaddingMode value) { return find_ours(kPadding, value, "padding mode"); }
Result<ResizeMode> to_ours(nv::InterpolationMode value) { return find_ours(kResize, value, "interpolation mode"); }
Result<CoordinateMode> to_ours(nv::ResizeCoordinateTransformation value) {
  return find_ours(kCoordinates, value, "coordinate transformation");
}
Result<NearestMode> to_ours(nv::ResizeRoundMode value) { return find_ours(kRounding, value, "rounding mode"); }

std::optional<nv::UnaryOperation> to_nv(UnaryOp value) { return find_theirs(kUnary, value); }
std::optional<nv::ActivationType> to_nv(ActivationOp value) { return find_theirs(kActivation, value); }
std::optional<nv::ElementWiseOperation> to_nv(ElementwiseOp value) { return find_theirs(kElementwise, value); }
std::optional<nv::ReduceOperation> to_nv(ReduceOp value) { return find_theirs(kReduce, value); }
std::optional<nv::PaddingMode> to_nv(PaddingMode value) { return find_theirs(kPadding, value); }
std::optional<nv::InterpolationMode> to_nv(ResizeMode value) { return find_theirs(kResize, value); }
std::optional<nv::ResizeCoordinateTransformation> to_nv(CoordinateMode value) {
  return find_theirs(kCoordinates, value);
}
std::optional<nv::ResizeRoundMode> to_nv(NearestMode value) { return find_theirs(kRounding, value); }

}  // namespace lathe::api
