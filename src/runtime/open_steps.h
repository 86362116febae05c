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
  // The numbers of all sites, one after the other, under these sizes; none where one has no value.
  std::optional<std::vector<int64_t>> numbers(std::span<const int64_t> symbols) const;
  // Of a site's code for these numbers of all sites.
  Digest key(size_t site, std::span<const int64_t> numbers) const;
  Result<std::vector<std::byte>> compile(size_t site, std::span<const int64_t> numbers) const;
  // Kernels of steps whose code is all there, by step; `code` is by site, empty where it could not be made. `between`
  // is called after one site's code has been loaded and before another's is.
  std::vector<std::unique_ptr<Kernel>> make_kernels(std::span<const std::span<const std::byte>> code,
                                                    const std::function<void()>& between) const;

 private:
  struct Source {
    std::string target, text;
  };
  struct Header {
    std::string name;
    std::vector<std::byte> compressed;  // until something is compiled: most engines specialise nothing
  };
  struct Site {
    const Launch* launch;
    uint32_t module;
    size_t first = 0;  // of its numbers among all
    std::vector<const Expr*> numbers;
  };
  struct Step {
    size_t index;
    std::vector<size_t> sites;  // by launch; kNone of a library's function
  };
  static constexpr size_t kNone = SIZE_MAX;
  bool is_open(const plan::Step& step) const;
  size_t site_of(const Launch& launch);
  std::span<const int64_t> of_site(size_t site, std::span<const int64_t> numbers) const {
    return numbers.subspan(sites_[site].first, sites_[site].numbers.size());
  }

  const plan::Plan& plan_;
  Device& device_;
  std::vector<Step> steps_;
  std::vector<Site> sites_;
  size_t num_numbers_ = 0;
  std::map<uint32_t, Source> sources_;  // by module
  std::vector<Header> headers_;
};

}  // namespace lathe
