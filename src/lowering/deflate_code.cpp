// SPDX-License-Identifier: Apache-2.0
#include "lowering/deflate_code.h"

#include <utility>

#include "base/deflate.h"
#include "plan/limits.h"
#include "tuning/all_cores.h"

namespace lathe {

Result<> deflate_code(BuiltPlan& built, size_t most_threads) {
  std::vector<CodeImage*> images;
  size_t bytes = 0;
  for (CodeModule& module : built.plan.codes)
    for (CodeImage& image : module.images)
      if (image.form != CodeForm::source) bytes += images.emplace_back(&image)->bytes.size();
  if (images.empty() || bytes > plan::kMaxDeflatedCode) return {};
  std::vector<Result<std::vector<std::byte>>> deflated(images.size());
  const auto deflate = [&](size_t i) { deflated[i] = deflate_bytes(images[i]->bytes); };
  LATHE_TRY(on_all_cores(
      images.size(), deflate, kUnlimited, [](double) { return Result<>(); }, most_threads));
  for (size_t i = 0; i < images.size(); ++i) {
    LATHE_ASSIGN(const std::vector<std::byte> kept, std::move(deflated[i]));
    const std::string& text = built.sources.emplace_back(reinterpret_cast<const char*>(kept.data()), kept.size());
    images[i]->bytes = std::as_bytes(std::span(text));
  }
  built.plan.is_code_deflated = true;
  return {};
}

}  // namespace lathe
