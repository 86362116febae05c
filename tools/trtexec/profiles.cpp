// SPDX-License-Identifier: Apache-2.0
// Optimization profiles from --minShapes, --optShapes, --maxShapes and --shapes.
#include <algorithm>

#include "cli/failure.h"
#include "cli/tensor.h"
#include "lathe.h"
#include "trtexec/build.h"
#include "trtexec/values.h"

namespace lathe::trtexec {
namespace {

using cli::UsageError;
using nvinfer1::OptProfileSelector;
using Dimensions = std::vector<int64_t>;

// The least, favourite and largest of one input; null where nothing is said.
struct InputRange {
  const Dimensions* least = nullptr;
  const Dimensions* favourite = nullptr;
  const Dimensions* largest = nullptr;
};

const Dimensions* first_of(std::initializer_list<const Dimensions*> dims) {
  for (const Dimensions* each : dims)
    if (each) return each;
  return nullptr;
}

InputRange range_of(const cli::ShapeRanges& ranges, const cli::ShapeMap& run, const std::string& name) {
  const Dimensions* least = find_named(ranges.min, name);
  const Dimensions* favourite = find_named(ranges.opt, name);
  const Dimensions* largest = find_named(ranges.max, name);
  const Dimensions* at_run = find_named(run, name);
  return {first_of({least, favourite, largest, at_run}), first_of({favourite, largest, least, at_run}),
          first_of({largest, favourite, least, at_run})};
}

void check_names(const cli::ShapeMap& shapes, const nvinfer1::INetworkDefinition& network, const char* flag) {
  std::string inputs;
  for (int32_t i = 0; i < network.getNbInputs(); ++i)
    inputs += fmt::format("{}{}", i ? ", " : "", network.getInput(i)->getName());
  for (const auto& entry : shapes) {
    bool found = false;
    for (int32_t i = 0; i < network.getNbInputs(); ++i) found |= name_fits(entry.first, network.getInput(i)->getName());
    if (!found)
      throw UsageError(fmt::format("{}: Cannot find input tensor with name \"{}\" in the network inputs: {}", flag,
                                   entry.first, inputs));
  }
}

void set_values(nvinfer1::IOptimizationProfile& profile, const char* name, const InputRange& range) {
  const std::pair<OptProfileSelector, const Dimensions*> all[] = {{OptProfileSelector::kMIN, range.least},
                                                                  {OptProfileSelector::kOPT, range.favourite},
                                                                  {OptProfileSelector::kMAX, range.largest}};
  for (const auto& [select, values] : all)
    if (!profile.setShapeValuesV2(name, select, values->data(), static_cast<int32_t>(values->size())))
      fail_as_reported("The values of an input were refused");
}

void set_dimensions(nvinfer1::IOptimizationProfile& profile, const nvinfer1::ITensor& input, const InputRange& range) {
  const Dimensions known = cli::to_vector(input.getDimensions());
  const std::pair<OptProfileSelector, const Dimensions*> all[] = {{OptProfileSelector::kMIN, range.least},
                                                                  {OptProfileSelector::kOPT, range.favourite},
                                                                  {OptProfileSelector::kMAX, range.largest}};
  for (const auto& [select, dims] : all) {
    bool fits = dims->size() == known.size();
    for (size_t i = 0; fits && i < known.size(); ++i)
      fits = (*dims)[i] >= 0 && (known[i] < 0 || known[i] == (*dims)[i]);
    if (!fits)
      throw UsageError(fmt::format("shape {} does not fit input {}, whose shape is {}", shape_text(*dims),
                                   input.getName(), cli::to_text(known)));
    if (!profile.setDimensions(input.getName(), select, cli::to_dims(*dims)))
      fail_as_reported("The shape of an input was refused");
  }
}

// Sets the input's range; whether there was something to set.
bool set_input(nvinfer1::IOptimizationProfile& profile, const nvinfer1::ITensor& input, InputRange range,
               TrtexecLog& log) {
  Dimensions ones = cli::to_vector(input.getDimensions());
  const bool open = cli::is_dynamic(input.getDimensions());
  if (input.isShapeTensor()) {
    if (!range.favourite)
      throw UsageError(fmt::format("input {0} is a shape: say which values it holds, as in --optShapes={0}:1x3x224x224",
                                   input.getName()));
    set_values(profile, input.getName(), range);
    return true;
  }
  if (!range.favourite) {
    if (!open) return false;
    for (int64_t& dim : ones) dim = dim < 0 ? 1 : dim;
    log.warn(
        "Dynamic dimensions required for input: {0}, but no shapes were provided. Automatically overriding shape to: "
        "{1}. Say what the engine is for with --minShapes, --optShapes, --maxShapes={0}:{1}",
        input.getName(), shape_text(ones));
    range = {&ones, &ones, &ones};
  }
  set_dimensions(profile, input, range);
  return true;
}

}  // namespace

void add_profiles(nvinfer1::IBuilder& builder, nvinfer1::IBuilderConfig& config,
                  const nvinfer1::INetworkDefinition& network, const Options& options, TrtexecLog& log) {
  check_names(options.shapes, network, "--shapes");
  for (const cli::ShapeRanges& ranges : options.profiles) {
    check_names(ranges.min, network, "--minShapes");
    check_names(ranges.opt, network, "--optShapes");
    check_names(ranges.max, network, "--maxShapes");
    nvinfer1::IOptimizationProfile* profile = builder.createOptimizationProfile();
    if (!profile) fail_as_reported("Profile creation failed");
    bool something = false;
    for (int32_t i = 0; i < network.getNbInputs(); ++i) {
      const nvinfer1::ITensor& input = *network.getInput(i);
      something |= set_input(*profile, input, range_of(ranges, options.shapes, input.getName()), log);
    }
    if (!something && options.profiles.size() == 1) return;
    if (config.addOptimizationProfile(profile) < 0) fail_as_reported("The optimization profile is not valid");
  }
}

}  // namespace lathe::trtexec
