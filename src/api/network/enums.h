// SPDX-License-Identifier: Apache-2.0
// Between the interface's enumerations and those of the graph: a table per pair, by name, so that neither's numbers
// matter (generations of the interface number differently).
#pragma once

#include <optional>

#include "NvInfer.h"
#include "base/result.h"
#include "ops/attributes.h"

namespace lathe::api {

namespace nv = nvinfer1;

// Fail where the interface has no such value.
Result<UnaryOp> to_ours(nv::UnaryOperation value);
Result<ActivationOp> to_ours(nv::ActivationType value);
Result<ElementwiseOp> to_ours(nv::ElementWiseOperation value);
Result<ReduceOp> to_ours(nv::ReduceOperation value);
Result<PaddingMode> to_ours(nv::PaddingMode value);
Result<ResizeMode> to_ours(nv::InterpolationMode value);
Result<CoordinateMode> to_ours(nv::ResizeCoordinateTransformation value);
Result<NearestMode> to_ours(nv::ResizeRoundMode value);

// Nothing where only the graph has it.
std::optional<nv::UnaryOperation> to_nv(UnaryOp value);
std::optional<nv::ActivationType> to_nv(ActivationOp value);
std::optional<nv::ElementWiseOperation> to_nv(ElementwiseOp value);
std::optional<nv::ReduceOperation> to_nv(ReduceOp value);
std::optional<nv::PaddingMode> to_nv(PaddingMode value);
std::optional<nv::InterpolationMode> to_nv(ResizeMode value);
std::optional<nv::ResizeCoordinateTransformation> to_nv(CoordinateMode value);
std::optional<nv::ResizeRoundMode> to_nv(NearestMode value);

}  // namespace lathe::api
