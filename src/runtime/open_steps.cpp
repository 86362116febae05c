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
  ContentHash hash;
  for (const SourceFile& header : plan.headers) {
    headers_.push_back({header.name, {header.bytes.begin(), header.bytes.end()}});
    hash.add(std::as_bytes(std::span(header.name.data(), header.name.size() + 1)));
    hash.add(headers_.back().compressed);
  }
  headers_digest_ = hash.digest();
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

size_t OpenSteps::number_of(const Expr& expr) {
  const auto known = std::ranges::find_if(numbers_, [&](const Expr* one) { return *one == expr; });
  const auto place = static_cast<size_t>(known - numbers_.begin());
  if (known == numbers_.end()) numbers_.push_back(&expr);
  return place;
}

size_t OpenSteps::site_of(const Launch& launch) {
  std::vector<size_t> numbers;
  for (const Expr* number : numbers_of(launch)) numbers.push_back(number_of(*number));
  const auto is_same = [&](const Site& site) {
    return site.module == launch.code && site.launch->entry == launch.entry && site.launch->grid == launch.grid &&
           site.numbers == numbers;
  };
  const auto known = std::ranges::find_if(sites_, is_same);
  if (known != sites_.end()) return static_cast<size_t>(known - sites_.begin());
  const CodeImage& image = *source_of(plan_.codes[launch.code]);
  sources_.try_emplace(launch.code, Source{image.target, text_of(image.bytes), digest_of(image.bytes)});
  sites_.push_back({&launch, launch.code, std::move(numbers)});
  return sites_.size() - 1;
}

std::optional<std::vector<int64_t>> OpenSteps::numbers(std::span<const int64_t> symbols) const {
  std::vector<int64_t> all;
  all.reserve(numbers_.size() + sites_.size());
  for (const Expr* number : numbers_) {
    const std::optional<int64_t> value = number->evaluate(symbols);
    if (!value) return std::nullopt;
    all.push_back(*value);
  }
  for (const Site& site : sites_)
    all.push_back(std::ranges::none_of(site.launch->grid, [&](const Expr& e) { return e.evaluate(symbols) == 0; }));
  return all;
}

std::vector<uint32_t> OpenSteps::modules_of(size_t step, std::span<const int64_t> numbers) const {
  const auto found = std::ranges::lower_bound(steps_, step, {}, &Step::index);
  std::vector<uint32_t> modules;
  for (const size_t site : found->sites)
    if (site != kNone && is_launched(site, numbers)) modules.push_back(module(site));
  return modules;
}

std::vector<int64_t> OpenSteps::of_site(size_t site, std::span<const int64_t> numbers) const {
  std::vector<int64_t> own;
  for (const size_t number : sites_[site].numbers) own.push_back(numbers[number]);
  return own;
}

Digest OpenSteps::key() const {
  ContentHash hash;
  for (size_t site = 0; site < sites_.size(); ++site) {
    hash.add(key(site, std::vector<int64_t>(numbers_.size() + sites_.size())));
    const std::string module = fmt::format("module {} of {};", sites_[site].module, plan_.codes.size());
    hash.add(std::as_bytes(std::span(module)));
  }
  return hash.digest();
}

// Runs ask for it: texts have been hashed before.
Digest OpenSteps::key(size_t site, std::span<const int64_t> numbers) const {
  const Site& one = sites_[site];
  std::string words = fmt::format("{} for {}:", one.launch->entry, device_.target());
  for (const int64_t number : of_site(site, numbers)) words += fmt::format(" {}", number);
  ContentHash hash;
  hash.add(sources_.at(one.module).digest);
  hash.add(headers_digest_);
  hash.add(std::as_bytes(std::span(words)));
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

// Launches whose grids are empty are left out: nothing is loaded for them.
std::vector<Launch> OpenSteps::launches_of(const Step& step, std::span<const int64_t> numbers) const {
  std::vector<Launch> launches;
  const std::vector<Launch>& planned = std::get<plan::DeviceLaunches>(plan_.steps[step.index].work).launches;
  for (size_t i = 0; i < planned.size(); ++i) {
    const size_t site = step.sites[i];
    if (site != kNone && !is_launched(site, numbers)) continue;
    launches.push_back(planned[i]);
    if (site != kNone) launches.back().code = static_cast<uint32_t>(site);
  }
  return launches;
}

std::vector<std::unique_ptr<Kernel>> OpenSteps::make_kernels(std::span<const int64_t> numbers,
                                                             std::span<const std::span<const std::byte>> code,
                                                             const std::function<void()>& between) const {
  std::vector<std::unique_ptr<Kernel>> kernels(plan_.steps.size());
  std::set<uint32_t> loaded;
  for (const Step& step : steps_) {
    const std::vector<Launch> launches = launches_of(step, numbers);
    const auto is_own = [](const Launch& launch) { return launch.library.empty(); };
    const auto lacks_code = [&](const Launch& launch) { return is_own(launch) && code[launch.code].empty(); };
    if (std::ranges::none_of(launches, is_own) || std::ranges::any_of(launches, lacks_code)) continue;
    const size_t before = loaded.size();
    for (const Launch& launch : launches)
      if (is_own(launch)) loaded.insert(launch.code);
    if (before > 0 && loaded.size() > before) between();
    const plan::Step& planned = plan_.steps[step.index];
    StepRecord record;
    record.kernel = planned.kernel();
    record.launches = launches;
    record.workspace = &std::get<plan::DeviceLaunches>(planned.work).workspace;
    record.code = code;
    // What the device refuses, for its registers, say, runs as it did.
    if (Result<std::unique_ptr<Kernel>> kernel = device_.make_kernel(record)) kernels[step.index] = *std::move(kernel);
  }
  return kernels;
}

}  // namespace lathe
