// SPDX-License-Identifier: Apache-2.0
#include "ir/captured.h"

namespace lathe::ir {

Value* Captured::inside(Value* value, Graph& body) {
  complete(body);
  const auto known = inputs_.find({&body, value});
  if (known != inputs_.end()) return known->second;
  values_.push_back(value);
  return inputs_[{&body, value}] = body.add_shared_input(value);
}

void Captured::complete(Graph& body) {
  for (Value* value : values_)
    if (!inputs_.contains({&body, value})) inputs_[{&body, value}] = body.add_shared_input(value);
}

}  // namespace lathe::ir
