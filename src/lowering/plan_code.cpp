// SPDX-License-Identifier: Apache-2.0
#include "lowering/plan_code.h"

#include <algorithm>
#include <utility>

#include "base/deflate.h"

namespace lathe {

Result<uint32_t> PlanCode::add(std::string_view source, bool is_open) {
  const auto known = std::ranges::find(out_.code_sources, source);
  const auto code = static_cast<uint32_t>(known - out_.code_sources.begin());
  if (known == out_.code_sources.end()) {
    LATHE_ASSIGN(Modules::Module module, modules_.find(std::string(source)));
    out_.code_sources.emplace_back(source);
    out_.plan.codes.push_back({{{options_.code_form, options_.code_for(), *module}}});
    out_.modules.push_back(std::move(module));
  }
  if (is_open) LATHE_TRY(add_source(code, source));
  return code;
}

Result<> PlanCode::check(const SourceLaunch& launch) {
  LATHE_ASSIGN(const Modules::Module module, modules_.find(launch.source));
  Device* device = options_.tuner.device.get();
  if (!device) return {};
  const std::span<const std::byte> code[] = {*module};
  const Expr workspace;
  LATHE_TRY(device->make_kernel({"", {}, nullptr, {&launch.launch, 1}, &workspace, code}));
  return {};
}

// What the runtime specialises the module's kernels from.
Result<> PlanCode::add_source(uint32_t code, std::string_view source) {
  std::vector<CodeImage>& images = out_.plan.codes[code].images;
  if (options_.source_target.empty() || images.back().form == CodeForm::source) return {};
  images.push_back(
      {CodeForm::source, options_.source_target, std::as_bytes(std::span(out_.sources.emplace_back(source)))});
  for (const SourceFile& header : modules_.headers_of(source)) {
    if (std::ranges::find(out_.plan.headers, header.name, &SourceFile::name) != out_.plan.headers.end()) continue;
    LATHE_ASSIGN(const auto text, deflate_bytes(header.bytes));
    const std::string& kept = out_.sources.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
    out_.plan.headers.push_back({header.name, std::as_bytes(std::span(kept))});
  }
  return {};
}

void PlanCode::drop_unused() {
  std::vector<uint32_t> renumbered(out_.modules.size(), UINT32_MAX);
  const auto for_each_launch = [&](const auto& visit) {
    for (plan::Step& step : out_.plan.steps)
      if (auto* device = std::get_if<plan::DeviceLaunches>(&step.work))
        for (Launch& launch : device->launches)
          if (launch.library.empty()) visit(launch);
  };
  for_each_launch([&](const Launch& launch) { renumbered[launch.code] = 0; });
  uint32_t kept = 0;
  for (uint32_t i = 0; i < renumbered.size(); ++i) {
    if (renumbered[i] == UINT32_MAX) continue;
    std::swap(out_.plan.codes[kept], out_.plan.codes[i]);
    std::swap(out_.modules[kept], out_.modules[i]);
    std::swap(out_.code_sources[kept], out_.code_sources[i]);
    renumbered[i] = kept++;
  }
  out_.plan.codes.resize(kept);
  out_.modules.resize(kept);
  out_.code_sources.resize(kept);
  for_each_launch([&](Launch& launch) { launch.code = renumbered[launch.code]; });
}

}  // namespace lathe
