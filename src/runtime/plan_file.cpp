// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan_file.h"

#include <algorithm>

#include "plan/header.h"

namespace lathe {

Result<PlanFile> PlanFile::without_weights(std::span<const std::byte> file) {
  LATHE_ASSIGN(const plan::PlanHeader header, plan::read_header(file));
  const plan::Section* weights = header.find(plan::kWeights);
  PlanFile kept;
  size_t begin = file.size();
  if (weights && !weights->detached) {
    begin = header.prefix_bytes + weights->offset;
    kept.weights_ = weights->bytes;
  }
  const auto before = file.first(begin), behind = file.subspan(begin + kept.weights_);
  kept.before_.assign(before.begin(), before.end());
  kept.behind_.assign(behind.begin(), behind.end());
  return kept;
}

Result<std::vector<std::byte>> PlanFile::with_weights(const std::function<Result<>(std::span<std::byte>)>& read) const {
  std::vector<std::byte> file(before_.size() + weights_ + behind_.size());
  std::ranges::copy(before_, file.begin());
  std::ranges::copy(behind_, file.end() - static_cast<ptrdiff_t>(behind_.size()));
  if (weights_ > 0) LATHE_TRY(read(std::span(file).subspan(before_.size(), weights_)));
  return file;
}

}  // namespace lathe
