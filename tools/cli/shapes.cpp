// SPDX-License-Identifier: Apache-2.0
#include "shapes.h"

#include <fmt/core.h>

#include <charconv>

#include "failure.h"
#include "tensor.h"

namespace lathe::cli {
namespace {

using nvinfer1::OptProfileSelector;

// Calls visit(name, rest) for each name:rest of the list. A name may hold colons: the last one counts.
template <class Visit>
void split(std::string_view text, std::string_view option, std::string_view form, Visit&& visit) {
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const size_t colon = entry.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == entry.size())
      throw UsageError(fmt::format("{}: '{}' is not of the form {}", option, entry, form));
    visit(std::string(entry.substr(0, colon)), entry.substr(colon + 1));
  }
}

std::vector<int64_t> parse_dims(std::string_view text, std::string_view option) {
  std::vector<int64_t> dims;
  if (text == "scalar") return dims;
  for (std::string_view rest = text;;) {
    int64_t dim = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), dim);
    if (error != std::errc() || dim < 0)
      throw UsageError(fmt::format("{}: '{}' is not a shape such as 1x3x224x224", option, text));
    dims.push_back(dim);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (rest.empty()) return dims;
    if (!rest.starts_with('x'))
      throw UsageError(fmt::format("{}: '{}' is not a shape such as 1x3x224x224", option, text));
    rest.remove_prefix(1);
  }
}

std::string input_list(const nvinfer1::INetworkDefinition& network) {
  std::string text;
  for (int32_t i = 0; i < network.getNbInputs(); ++i)
    text += fmt::format("{}{} ({})", i ? ", " : "", network.getInput(i)->getName(),
                        to_text(to_vector(network.getInput(i)->getDimensions())));
  return text.empty() ? "none" : text;
}

void check_names(const ShapeMap& shapes, const nvinfer1::INetworkDefinition& network) {
  for (const auto& entry : shapes) {
    bool found = false;
    for (int32_t i = 0; i < network.getNbInputs(); ++i) found |= entry.first == network.getInput(i)->getName();
    if (!found)
      throw UsageError(fmt::format("the model has no input '{}'; its inputs: {}", entry.first, input_list(network)));
  }
}

void set_dims(nvinfer1::IOptimizationProfile& profile, const nvinfer1::ITensor& input, OptProfileSelector select,
              const std::vector<int64_t>& dims) {
  const std::vector<int64_t> known = to_vector(input.getDimensions());
  bool fits = known.size() == dims.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) fits = known[i] < 0 || known[i] == dims[i];
  if (!fits)
    throw UsageError(fmt::format("shape {} does not fit input '{}', whose shape is {}", to_text(dims), input.getName(),
                                 to_text(known)));
  if (!profile.setDimensions(input.getName(), select, to_dims(dims))) throw Failure(lastError());
}

}  // namespace

ShapeMap parse_shapes(std::string_view text, std::string_view option) {
  ShapeMap shapes;
  split(text, option, "name:1x3x224x224",
        [&](std::string name, std::string_view dims) { shapes[std::move(name)] = parse_dims(dims, option); });
  return shapes;
}

std::map<std::string, std::string> parse_files(std::string_view text, std::string_view option) {
  std::map<std::string, std::string> files;
  split(text, option, "name:file", [&](std::string name, std::string_view file) { files[std::move(name)] = file; });
  return files;
}

ShapeRanges parse_ranges(std::string_view min, std::string_view opt, std::string_view max) {
  const ShapeRanges given{parse_shapes(min, "--minShapes"), parse_shapes(opt, "--optShapes"),
                          parse_shapes(max, "--maxShapes")};
  ShapeRanges ranges = given;  // what one of them leaves out is taken from another; insert() keeps what is there
  for (const ShapeMap* other : {&given.opt, &given.max}) ranges.min.insert(other->begin(), other->end());
  for (const ShapeMap* other : {&given.max, &given.min}) ranges.opt.insert(other->begin(), other->end());
  for (const ShapeMap* other : {&given.opt, &given.min}) ranges.max.insert(other->begin(), other->end());
  return ranges;
}

bool is_dynamic(const nvinfer1::Dims& dims) {
  for (int32_t i = 0; i < dims.nbDims; ++i)
    if (dims.d[i] < 0) return true;
  return false;
}

void fill_profile(nvinfer1::IOptimizationProfile& profile, const nvinfer1::INetworkDefinition& network,
                  const ShapeRanges& ranges) {
  for (const ShapeMap* shapes : {&ranges.min, &ranges.opt, &ranges.max}) check_names(*shapes, network);
  for (int32_t i = 0; i < network.getNbInputs(); ++i) {
    const nvinfer1::ITensor& input = *network.getInput(i);
    const std::string name = input.getName();
    const auto opt = ranges.opt.find(name);
    if (opt == ranges.opt.end()) {
      if (!is_dynamic(input.getDimensions())) continue;
      throw UsageError(fmt::format("input '{}' has shape {}: give its sizes too, as in --optShapes={}:...", name,
                                   to_text(to_vector(input.getDimensions())), name));
    }
    set_dims(profile, input, OptProfileSelector::kMIN, ranges.min.at(name));
    set_dims(profile, input, OptProfileSelector::kOPT, opt->second);
    set_dims(profile, input, OptProfileSelector::kMAX, ranges.max.at(name));
  }
}

}  // namespace lathe::cli
