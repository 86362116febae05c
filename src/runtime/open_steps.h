// SPDX-License-Identifier: Apache-2.0
// The steps of a plan whose device code is given sizes as numbers, and what it can be compiled from again for given
// ones.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "plan/plan.h"

namespace lathe {

// Immutable. The engine outlives it; the bytes of its plan need not be there any more.
class OpenSteps {
 public:
  // Those of a plan that has sources; no steps where they give nothing to specialise.
  OpenSteps(const plan::Plan& plan, Device& device);
  bool is_empty() const { return steps_.empty(); }
  size_t num_steps_of_plan() const { return plan_.steps.size(); }

  // What is compiled once for all steps that launch it with the same numbers.
  size_t num_sites() const { return sites_.size(); }
  // What all sites are given under these sizes, each number once, and behind that for each site 1 where it is launched
  // and 0 where its grid is empty; none where a number has no value.
  std::optional<std::vector<int64_t>> numbers(std::span<const int64_t> symbols) const;
  bool is_launched(size_t site, std::span<const int64_t> numbers) const { return numbers[numbers_.size() + site] != 0; }
  // Of the plan's code: that of a site, and those that a step of the plan, which is open, launches.
  uint32_t module(size_t site) const { return sites_[site].module; }
  std::vector<uint32_t> modules_of(size_t step, std::span<const int64_t> numbers) const;
  // Of all sites' code, whatever the numbers, and of the modules' order.
  Digest key() const;
  // Of a site's code for these.
  Digest key(size_t site, std::span<const int64_t> numbers) const;
  Result<std::vector<std::byte>> compile(size_t site, std::span<const int64_t> numbers) const;
  // Kernels of steps whose code is all there, by step, for these numbers alone; `code` is by site, empty where it could
  // not be made or is not launched. `between` is called after one site's code has been loaded and before another's is.
  std::vector<std::unique_ptr<Kernel>> make_kernels(std::span<const int64_t> numbers,
                                                    std::span<const std::span<const std::byte>> code,
                                                    const std::function<void()>& between) const;

 private:
  struct Source {
    std::string target, text;
    Digest digest;  // of the text
  };
  struct Header {
    std::string name;
    std::vector<std::byte> compressed;  // until something is compiled: most engines specialise nothing
  };
  struct Site {
    const Launch* launch;
    uint32_t module;
    std::vector<size_t> numbers;  // that it is given
  };
  struct Step {
    size_t index;
    std::vector<size_t> sites;  // by launch; kNone of a library's function
  };
  static constexpr size_t kNone = SIZE_MAX;
  bool is_open(const plan::Step& step) const;
  size_t site_of(const Launch& launch);
  std::vector<Launch> launches_of(const Step& step, std::span<const int64_t> numbers) const;
  size_t number_of(const Expr& expr);
  std::vector<int64_t> of_site(size_t site, std::span<const int64_t> numbers) const;

  const plan::Plan& plan_;
  Device& device_;
  std::vector<Step> steps_;
  std::vector<Site> sites_;
  std::vector<const Expr*> numbers_;    // each once
  std::map<uint32_t, Source> sources_;  // by module
  std::vector<Header> headers_;
  Digest headers_digest_{};
};

}  // namespace lathe
