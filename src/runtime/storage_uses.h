// SPDX-License-Identifier: Apache-2.0
// What a loop does with storages, as far as the plan says it.
#pragma once

#include <map>
#include <set>

#include "plan/plan.h"

namespace lathe {

class StorageUses {
 public:
  StorageUses(const plan::Plan& plan, size_t loop);

  // How many params, results and operands of the loop lie there.
  size_t of(const plan::TensorDesc& tensor) const;
  // Whether steps of the loop write there, or blocks among them move values there.
  bool is_written(const plan::TensorDesc& tensor) const { return written_.contains(storage_of(tensor)); }

 private:
  using Storage = std::pair<plan::StorageKind, uint32_t>;
  static Storage storage_of(const plan::TensorDesc& tensor) { return {tensor.storage, tensor.index}; }

  std::map<Storage, size_t> uses_;
  std::set<Storage> written_;
};

}  // namespace lathe
