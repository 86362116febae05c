// SPDX-License-Identifier: Apache-2.0
// What a run is given: checked, brought where the engine reads it, and its sizes told to the context.
#include <algorithm>
#include <cstring>

#include "api/convert.h"
#include "wrapper/run.h"

namespace lathe::wrapper {
namespace {

template <class To, class From>
void convert(const std::byte* from, std::byte* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    const auto converted = static_cast<To>(value);
    std::memcpy(to + i * sizeof(To), &converted, sizeof(To));
  }
}

bool has_open_size(const nv::Dims& dims) {
  return std::any_of(dims.d, dims.d + dims.nbDims, [](auto size) { return size < 0; });
}

bool is_integer(nv::DataType type) { return type == nv::DataType::kINT32 || type == nv::DataType::kINT64; }

}  // namespace

std::string dims_text(const nv::Dims& dims) {
  std::string text = "[";
  for (int32_t i = 0; i < dims.nbDims; ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", int64_t{dims.d[i]});
  return text + "]";
}

Result<size_t> bytes_of_tensor(const std::string& name, nv::DataType type, const nv::Dims& dims) {
  LATHE_ASSIGN(const DType element, api::to_dtype(type));
  int64_t count = 1;
  for (int32_t i = 0; i < dims.nbDims; ++i) {
    if (dims.d[i] < 0)
      return fail(ErrorCode::binding_invalid,
                  "the dims of '{}' are {}: a size is not known; outputs of such sizes need setOutputAllocator()", name,
                  dims_text(dims));
    if (__builtin_mul_overflow(count, int64_t{dims.d[i]}, &count))
      return fail(ErrorCode::binding_invalid, "the dims of '{}' are {}: that is too much", name, dims_text(dims));
  }
  if (const std::optional<int64_t> bytes = bytes_of(element, count)) return static_cast<size_t>(*bytes);
  return fail(ErrorCode::binding_invalid, "the dims of '{}' are {}: that is too much", name, dims_text(dims));
}

Result<> WrappedEngine::take_inputs(const std::vector<InputTensor>& given, Run& run) {
  for (const EngineTensor& tensor : inputs_) {
    const auto found =
        std::find_if(given.begin(), given.end(), [&](const InputTensor& input) { return input.name == tensor.name; });
    if (found == given.end()) return fail(ErrorCode::binding_missing, "input '{}' is not given", tensor.name);
    LATHE_TRY(take_input(tensor, *found, run));
  }
  if (given.size() == inputs_.size()) return {};
  for (const InputTensor& input : given)
    if (std::none_of(inputs_.begin(), inputs_.end(), [&](const EngineTensor& t) { return t.name == input.name; }))
      return fail(ErrorCode::binding_invalid, "the engine has no input '{}'", input.name);
  return fail(ErrorCode::binding_invalid, "an input is given twice: {} are given, and the engine has {}", given.size(),
              inputs_.size());
}

Result<> WrappedEngine::take_input(const EngineTensor& tensor, const InputTensor& given, Run& run) {
  if (!api::is_valid(given.dims) || has_open_size(given.dims))
    return fail(ErrorCode::binding_invalid,
                "the dims of input '{}' are not valid: give 0 to 8 sizes that are not "
                "negative",
                tensor.name);
  const bool converts = tensor.is_shape && is_integer(given.type) && is_integer(tensor.type);
  if (given.type != tensor.type && !converts)
    return fail(ErrorCode::type_mismatch,
                "input '{}' is of type {} (nvinfer1::DataType), and the engine reads {}: "
                "convert it",
                tensor.name, static_cast<int>(given.type), static_cast<int>(tensor.type));
  Run::Tensor taken{given.dims, 0, const_cast<void*>(given.data)};
  LATHE_ASSIGN(taken.bytes, bytes_of_tensor(tensor.name, tensor.type, given.dims));
  if (!given.data && taken.bytes > 0)
    return fail(ErrorCode::binding_missing, "input '{}' of {} bytes has no data", tensor.name, taken.bytes);
  LATHE_TRY(tensor.on_host ? read_on_host(tensor, given, taken.data, run)
                           : bring_to_device(tensor, given, taken.data, run));
  if (taken.bytes == 0) taken.data = nothing_.data();
  run.key += dims_text(given.dims);
  if (tensor.is_shape && tensor.on_host)  // sizes depend on the values
    run.key.append(static_cast<const char*>(taken.data), taken.bytes);
  run.inputs.push_back(taken);
  return {};
}

Result<> WrappedEngine::read_on_host(const EngineTensor& tensor, const InputTensor& given, void*& data, Run& run) {
  LATHE_ASSIGN(const size_t given_bytes, bytes_of_tensor(tensor.name, given.type, given.dims));
  LATHE_ASSIGN(const size_t bytes, bytes_of_tensor(tensor.name, tensor.type, given.dims));
  const bool downloads = run.stream && given.location == nv::TensorLocation::kDEVICE && given_bytes > 0;
  if (downloads && run.is_captured)
    return fail(ErrorCode::stream_captured,
                "input '{}' is read on the host, and lies on the device: while the stream is captured it must be in "
                "the host's memory (InputTensor::location)",
                tensor.name);
  if (!downloads && given.type == tensor.type) return {};
  std::unique_ptr<std::byte[]>& source = run.values.emplace_back(new std::byte[given_bytes + 1]);
  if (downloads) {
    LATHE_TRY(device_.download(source.get(), given.data, given_bytes, run.stream));
  } else if (given_bytes > 0) {
    std::memcpy(source.get(), given.data, given_bytes);
  }
  data = source.get();
  if (given.type == tensor.type) return {};
  std::unique_ptr<std::byte[]> converted(new std::byte[bytes + 1]);
  if (tensor.type == nv::DataType::kINT64) {
    convert<int64_t, int32_t>(source.get(), converted.get(), bytes / sizeof(int64_t));
  } else {
    convert<int32_t, int64_t>(source.get(), converted.get(), bytes / sizeof(int32_t));
  }
  data = converted.get();
  run.values.push_back(std::move(converted));
  return {};
}

// In safe mode it is looked at where the memory is; else the caller says so.
Result<> WrappedEngine::bring_to_device(const EngineTensor& tensor, const InputTensor& given, void*& data, Run& run) {
  LATHE_ASSIGN(const size_t bytes, bytes_of_tensor(tensor.name, tensor.type, given.dims));
  const bool is_host = given.location == nv::TensorLocation::kHOST;
  const bool is_elsewhere = !is_host && safe_mode && bytes > 0 && !device_.is_accessible(given.data);
  if ((!is_host && !is_elsewhere) || bytes == 0) return {};
  if (run.is_captured)
    return fail(ErrorCode::stream_captured,
                "input '{}' is not in the memory of the engine's GPU: while the stream is captured it must be there, "
                "because the graph reads it again",
                tensor.name);
  say_once("input " + tensor.name,
           fmt::format("input '{}' lies {}: it is copied for each run", tensor.name,
                       is_host ? "in the host's memory" : "in memory that is not the engine's GPU's"));
  LATHE_ASSIGN(DeviceMemory copy, device_.allocate(bytes));
  LATHE_TRY(is_host ? device_.upload(copy.data(), given.data, bytes, run.stream)
                    : device_.copy(copy.data(), given.data, bytes, run.stream));
  data = copy.data();
  run.copies.push_back(std::move(copy));
  return {};
}

bool WrappedEngine::fits(const Run& run, int32_t profile) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const char* const name = inputs_[i].name.c_str();
    const nv::Dims& dims = run.inputs[i].dims;
    const nv::Dims least = engine_->getProfileShape(name, profile, nv::OptProfileSelector::kMIN);
    const nv::Dims most = engine_->getProfileShape(name, profile, nv::OptProfileSelector::kMAX);
    if (least.nbDims != dims.nbDims || most.nbDims != dims.nbDims) return false;
    for (int32_t axis = 0; axis < dims.nbDims; ++axis)
      if (dims.d[axis] < least.d[axis] || dims.d[axis] > most.d[axis]) return false;
  }
  return true;
}

// The one that is set stays while it fits.
Result<int32_t> WrappedEngine::choose_profile(const Run& run) const {
  const int32_t set = context_->getOptimizationProfile();
  if (set >= 0 && fits(run, set)) return set;
  for (int32_t profile = 0; profile < engine_->getNbOptimizationProfiles(); ++profile)
    if (fits(run, profile)) return profile;
  std::string sizes;
  for (size_t i = 0; i < inputs_.size(); ++i)
    sizes += fmt::format("{}'{}' {}", i > 0 ? ", " : "", inputs_[i].name, dims_text(run.inputs[i].dims));
  return fail(ErrorCode::profile_range,
              "no optimization profile of the engine's {} takes these sizes: {}; the engine's inspector lists what "
              "they take",
              engine_->getNbOptimizationProfiles(), sizes);
}

Result<> WrappedEngine::set_shapes(const Run& run) {
  LATHE_ASSIGN(const int32_t profile, choose_profile(run));
  auto* const stream = run.stream ? reinterpret_cast<cudaStream_t>(run.stream->handle()) : nullptr;
  if (profile != context_->getOptimizationProfile() && !context_->setOptimizationProfileAsync(profile, stream))
    return fail(refused("setOptimizationProfileAsync()"));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const char* const name = inputs_[i].name.c_str();
    if (!context_->setInputShape(name, run.inputs[i].dims)) return fail(refused("setInputShape()"));
    if (inputs_[i].on_host && !context_->setInputTensorAddress(name, run.inputs[i].data))
      return fail(refused("setInputTensorAddress()"));
  }
  const char* missing = nullptr;
  const int32_t count = context_->inferShapes(1, &missing);
  if (count == 0) return {};
  if (count < 0) return fail(refused("inferShapes()"));
  return fail(ErrorCode::binding_missing, "sizes depend on {} inputs without values, '{}' for one", count,
              missing ? missing : "");
}

}  // namespace lathe::wrapper
