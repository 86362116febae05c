// SPDX-License-Identifier: Apache-2.0
// An op's shape rule on inputs of known size.
#pragma once

#include "ops/op.h"

namespace lathe {

// The types of the results. types[i] is null where input i is omitted; contents[i], undefined where it is not known,
// decides sizes that depend on it. A dimension that needs contents which are not given is Expr::invalid().
Result<std::vector<ValueType>> result_types(const Attributes& attributes, std::span<const ValueType* const> types,
                                            std::span<const Tensor> contents, size_t num_outputs);

}  // namespace lathe
