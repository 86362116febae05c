// SPDX-License-Identifier: Apache-2.0
#include "runtime/open_steps.h"

#include <algorithm>
#include <deque>
#include <set>

#include "base/inflate.h"
#include "device/open_numbers.h"

namespace lathe {
namespace {

const CodeImage* source_of(const CodeModule& module) {
  const auto found = std::ranges::find(module.images, CodeForm::source, &CodeImage::form);
  return found == module.images.end() ? nullptr : &*found;
}

constexpr size_t kMostHeaderBytes = size_t{16} << 20;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<const Expr*> numbers_of(const Launch& launch) {
  std::vector<const Expr*> numbers;
  for (const LaunchArg& arg : launch.args)
    if (arg.kind == LaunchArg::number) numbers.push_back(&arg.value);
  return numbers;
}

}  // namespace

OpenSteps::OpenSteps(const plan::Plan& plan, Device& device) : plan_(plan), device_(device) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (!is_open(plan.steps[i])) continue;
    Step& step = steps_.emplace_back(Step{i, {}});
    for (const Launch& launch : std::get<plan::DeviceLaunches>(plan.steps[i].work).launches)
      step.sites.push_back(launch.library.empty() ? site_of(launch) : kNone);
  }
  if (steps_.empty()) return;
  for (const SourceFile& header : plan.headers)
    headers_.push_back({header.name, {header.bytes.begin(), header.bytes.end()}});
}

// Sizes that running finds out would differ within a run.
bool OpenSteps::is_open(const plan::Step& step) const {
  const auto* device = std::get_if<plan::DeviceLaunches>(&step.work);
  if (!device || std::ranges::none_of(device->launches, has_open_numbers)) return false;
  return std::ranges::all_of(device->launches, [&](const Launch& launch) {
    if (!launch.library.empty()) return true;
    const std::vector<const Expr*> numbers = numbers_of(launch);
    const auto is_found_in_runs = [&](const Expr* number) { return depends_on_data(*number, plan_.symbols); };
    return source_of(plan_.codes[launch.code]) && std::ranges::none_of(numbers, is_found_in_runs);
  });
}

size_t OpenSteps::site_of(const Launch& launch) {
  const std::vector<const Expr*> numbers = numbers_of(launch);
  const auto is_same = [&](const Site& site) {
    return site.module == launch.code && site.launch->entry == launch.entry &&
           std::ranges::equal(site.numbers, numbers, [](const Expr* a, const Expr* b) { return *a == *b; });
  };
  const auto known = std::ranges::find_if(sites_, is_same);
  if (known != sites_.end()) return static_cast<size_t>(known - sites_.begin());
  const CodeImage& image = *source_of(plan_.codes[launch.code]);
  sources_.try_emplace(launch.code, Source{image.target, text_of(image.bytes)});
  sites_.push_back({&launch, launch.code, num_numbers_, numbers});
  num_numbers_ += numbers.size();
  return sites_.size() - 1;
}

std::optional<std::vector<int64_t>> OpenSteps::numbers(std::span<const int64_t> symbols) const {
  std::vector<int64_t> all;
  all.reserve(num_numbers_);
  for (const Site& site : sites_)
    for (const Expr* number : site.numbers) {
      const std::optional<int64_t> value = number->evaluate(symbols);
      if (!value) return std::nullopt;
      all.push_back(*value);
    }
  return all;
}

Digest OpenSteps::key(size_t site, std::span<const int64_t> numbers) const {
  const Site& one = sites_[site];
  std::string words = fmt::format("{} for {}:", one.launch->entry, device_.target());
  for (const int64_t number : of_site(site, numbers)) words += fmt::format(" {}", number);
  ContentHash hash;
  const auto add = [&](std::string_view text) {
    hash.add(std::as_bytes(std::span(text)));
    hash.add(std::array{std::byte{0}});
  };
  add(words);
  add(sources_.at(one.module).text);
  for (const Header& header : headers_) {
    add(header.name);
    hash.add(header.compressed);
  }
  return hash.digest();
}

Result<std::vector<std::byte>> OpenSteps::compile(size_t site, std::span<const int64_t> numbers) const {
  const Site& one = sites_[site];
  const Source& source = sources_.at(one.module);
  const CodeImage image{CodeForm::source, source.target, std::as_bytes(std::span(source.text))};
  std::deque<std::vector<std::byte>> texts;
  std::vector<SourceFile> headers;
  for (const Header& header : headers_) {
    LATHE_ASSIGN(std::vector<std::byte> text, inflate_bytes(header.compressed, kMostHeaderBytes));
    headers.push_back({header.name, texts.emplace_back(std::move(text))});
  }
  return device_.specialize(image, headers, *one.launch, of_site(site, numbers));
}

std::vector<std::unique_ptr<Kernel>> OpenSteps::make_kernels(std::span<const std::span<const std::byte>> code,
                                                             const std::function<void()>& between) const {
  std::vector<std::unique_ptr<Kernel>> kernels(plan_.steps.size());
  std::set<size_t> loaded = {kNone};
  for (const Step& step : steps_) {
    if (std::ranges::any_of(step.sites, [&](size_t site) { return site != kNone && code[site].empty(); })) continue;
    const size_t before = loaded.size();
    loaded.insert(step.sites.begin(), step.sites.end());
    if (before > 1 && loaded.size() > before) between();
    const plan::Step& planned = plan_.steps[step.index];
    const auto& device = std::get<plan::DeviceLaunches>(planned.work);
    std::vector<Launch> launches = device.launches;
    for (size_t i = 0; i < launches.size(); ++i)
      if (step.sites[i] != kNone) launches[i].code = static_cast<uint32_t>(step.sites[i]);
    StepRecord record;
    record.kernel = planned.kernel();
    record.launches = launches;
    record.workspace = &device.workspace;
    record.code = code;
    // What the device refuses, for its registers, say, runs as it did.
    if (Result<std::unique_ptr<Kernel>> kernel = device_.make_kernel(record)) kernels[step.index] = *std::move(kernel);
  }
  return kernels;
}

}  // namespace lathe
