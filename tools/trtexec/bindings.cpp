// SPDX-License-Identifier: Apache-2.0
#include "trtexec/bindings.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "cli/failure.h"
#include "cli/tensor_file.h"
#include "trtexec/values.h"

namespace lathe::trtexec {
namespace {

using cli::Failure;
using cli::HostTensor;
using cli::UsageError;
using nvinfer1::OptProfileSelector;
using nvinfer1::TensorIOMode;

constexpr size_t kAlignment = 256;  // what interfaces of GPUs promise, and vector units like

bool is_open(const std::vector<int64_t>& dims) {
  return std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 0; });
}

std::vector<int64_t> run_shape(const nvinfer1::ICudaEngine& engine, const char* name, const Options& options,
                               TrtexecLog& log) {
  std::vector<int64_t> declared = cli::to_vector(engine.getTensorShape(name));
  const bool holds_shape = engine.isShapeInferenceIO(name);
  const std::vector<int64_t>* given = find_named(options.shapes, name);
  if (given && !holds_shape) return *given;
  if (!is_open(declared)) return declared;
  std::vector<int64_t> dims =
      cli::to_vector(engine.getProfileShape(name, options.use_profile, OptProfileSelector::kOPT));
  for (int64_t& dim : dims) dim = std::max<int64_t>(dim, 1);
  if (!holds_shape && !find_named(options.profiles[0].opt, name))
    log.warn(
        "Shape missing for input with dynamic shape: {0}. Automatically setting shape to: {1}. Give it with "
        "--shapes={0}:{1}",
        name, shape_text(dims));
  return dims;
}

// What an input that is a shape holds: --shapes, or the profile's favourite.
void fill_shape_values(HostTensor& tensor, const nvinfer1::ICudaEngine& engine, const Options& options) {
  const auto count = static_cast<size_t>(cli::volume(tensor.dims));
  const std::vector<int64_t>* given = find_named(options.shapes, tensor.name);
  const int64_t* values =
      engine.getProfileTensorValuesV2(tensor.name.c_str(), options.use_profile, OptProfileSelector::kOPT);
  if (given) {
    if (given->size() != count)
      throw UsageError(fmt::format("--shapes: input {} is a shape of {} values, but {} were given", tensor.name, count,
                                   given->size()));
    values = given->data();
  }
  if (!values)
    throw UsageError(fmt::format("input {} is a shape of {} values; give them with --shapes={}:...", tensor.name, count,
                                 tensor.name));
  const size_t width = cli::byte_size(tensor.type, {1});
  for (size_t i = 0; i < count; ++i) {
    const auto narrow = static_cast<int32_t>(values[i]);
    const void* from = width == sizeof(int64_t) ? static_cast<const void*>(&values[i]) : &narrow;
    std::memcpy(&tensor.data[i * width], from, std::min(width, sizeof(int64_t)));
  }
}

HostTensor content_of(const IoBinding& binding, const nvinfer1::ICudaEngine& engine, const Options& options,
                      const ReferencePair& files, TrtexecLog& log) {
  if (const std::string* path = find_named(files.inputs, binding.name)) {
    log.info("Using values loaded from {} for input {}", *path, binding.name);
    return cli::read_tensor_file(*path, {binding.name, binding.type, binding.dims});
  }
  HostTensor tensor = cli::make_input(binding.name, binding.type, binding.dims, 1);
  if (engine.isShapeInferenceIO(binding.name.c_str())) {
    fill_shape_values(tensor, engine, options);
    log.info("Using values of the command line or the profile for input {}", binding.name);
  } else if (cli::is_float(binding.type) || binding.type == DataType::kBOOL) {
    log.info("Using random values for input {}", binding.name);
  } else {
    log.info("Using zeros for input {0}, which may hold indices: --loadInputs={0}:FILE gives others", binding.name);
  }
  return tensor;
}

[[noreturn]] void fail_with_library() {
  const std::string reason = lathe::lastError();
  throw Failure(reason.empty() ? "the library refused (see above)" : reason);
}

}  // namespace

std::shared_ptr<void> IoPlace::engine_memory(size_t bytes) const {
  if (!calls_) return host_memory(bytes);
  return gpu_memory(*calls_, managed_ ? GpuMemoryKind::managed : GpuMemoryKind::device, bytes);
}

std::shared_ptr<void> IoPlace::host_memory(size_t bytes) const {
  if (calls_ && calls_->allocate_host && calls_->free_host) return gpu_memory(*calls_, GpuMemoryKind::host, bytes);
  const size_t size = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  void* const data = std::aligned_alloc(kAlignment, size);
  if (!data) throw std::bad_alloc();
  return {data, std::free};
}

void* GrowingOutput::reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t, cudaStream_t) noexcept {
  try {
    if (!memory_ || size > size_) {
      memory_ = place_.engine_memory(size);
      size_ = size;
    }
    return memory_.get();
  } catch (...) {
    return nullptr;
  }
}

IoBindings::IoBindings(nvinfer1::IExecutionContext& context, const IoPlace& place, const Options& options,
                       const ReferencePair& files, TrtexecLog& log)
    : place_(place) {
  const nvinfer1::ICudaEngine& engine = context.getEngine();
  std::vector<const char*> outputs;
  for (int32_t i = 0; i < engine.getNbIOTensors(); ++i) {
    const char* name = engine.getIOTensorName(i);
    if (engine.getTensorIOMode(name) == TensorIOMode::kINPUT)
      add_input(context, name, options, files, log);
    else
      outputs.push_back(name);
  }
  for (const auto& entry : files.inputs)
    if (std::none_of(bindings_.begin(), bindings_.end(),
                     [&](const IoBinding& binding) { return name_fits(entry.first, binding.name); }))
      throw UsageError(fmt::format("--loadInputs: the engine has no input {}", entry.first));
  const char* missing = nullptr;
  if (context.inferShapes(1, &missing) != 0) fail_with_library();
  for (const char* name : outputs) add_output(context, name, log);
}

// Where channels lie in groups, the last group is whole.
void IoBindings::give_memory(IoBinding& binding, const nvinfer1::ICudaEngine& engine) const {
  std::vector<int64_t> dims = binding.dims;
  const int32_t axis = engine.getTensorVectorizedDim(binding.name.c_str());
  const int64_t group = engine.getTensorComponentsPerElement(binding.name.c_str());
  if (axis >= 0) {
    int64_t& channels = dims[static_cast<size_t>(axis)];
    channels = (channels + group - 1) / group * group;
  }
  binding.bytes = cli::byte_size(binding.type, dims);
  binding.engine = binding.on_host ? place_.host_memory(binding.bytes) : place_.engine_memory(binding.bytes);
  const bool copied = place_.has_copies() && !binding.on_host;
  binding.host = copied ? place_.host_memory(binding.bytes) : binding.engine;
}

void IoBindings::add_input(nvinfer1::IExecutionContext& context, const char* name, const Options& options,
                           const ReferencePair& files, TrtexecLog& log) {
  const nvinfer1::ICudaEngine& engine = context.getEngine();
  IoBinding binding{name, engine.getTensorDataType(name), true, false, {}, 0, nullptr, nullptr, nullptr};
  binding.on_host = engine.getTensorLocation(name) == nvinfer1::TensorLocation::kHOST;
  binding.dims = run_shape(engine, name, options, log);
  if (!context.setInputShape(name, cli::to_dims(binding.dims))) fail_with_library();
  const HostTensor content = content_of(binding, engine, options, files, log);
  give_memory(binding, engine);
  if (!content.data.empty()) std::memcpy(binding.host.get(), content.data.data(), content.data.size());
  if (!context.setTensorAddress(name, binding.engine.get())) fail_with_library();
  log.info("Input binding for {} with dimensions {} is created.", name, shape_text(binding.dims));
  bindings_.push_back(std::move(binding));
}

void IoBindings::add_output(nvinfer1::IExecutionContext& context, const char* name, TrtexecLog& log) {
  const nvinfer1::ICudaEngine& engine = context.getEngine();
  IoBinding binding{name, engine.getTensorDataType(name), false, false, {}, 0, nullptr, nullptr, nullptr};
  binding.on_host = engine.getTensorLocation(name) == nvinfer1::TensorLocation::kHOST;
  binding.dims = cli::to_vector(context.getTensorShape(name));
  if (is_open(binding.dims))
    binding.growing = std::make_unique<GrowingOutput>(place_);
  else
    give_memory(binding, engine);
  log.info("Output binding for {} with dimensions {} is created.", name, shape_text(binding.dims));
  bindings_.push_back(std::move(binding));
}

void IoBindings::bind(nvinfer1::IExecutionContext& context) const {
  for (const IoBinding& binding : bindings_) {
    const char* name = binding.name.c_str();
    const bool done = binding.growing ? context.setOutputAllocator(name, binding.growing.get())
                                      : context.setTensorAddress(name, binding.engine.get());
    if (!done) fail_with_library();
  }
}

bool IoBindings::has_growing_outputs() const {
  return std::any_of(bindings_.begin(), bindings_.end(),
                     [](const IoBinding& binding) { return binding.growing != nullptr; });
}

size_t IoBindings::copied_bytes() const {
  size_t bytes = 0;
  for (const IoBinding& binding : bindings_) bytes += binding.is_copied() ? binding.bytes : 0;
  return bytes;
}

void IoBindings::copy_inputs(const GpuStream& stream) const {
  const CudaCalls& calls = place_.calls();
  for (const IoBinding& binding : bindings_)
    if (binding.is_input && binding.is_copied() && binding.bytes)
      check_cuda(calls,
                 calls.to_device(reinterpret_cast<unsigned long long>(binding.engine.get()), binding.host.get(),
                                 binding.bytes, stream.get()),
                 "copying an input");
}

void IoBindings::copy_outputs(const GpuStream& stream) {
  const CudaCalls& calls = place_.calls();
  for (IoBinding& binding : bindings_) {
    if (binding.is_input) continue;
    if (binding.growing) {
      binding.dims = cli::to_vector(binding.growing->dims());
      const size_t bytes = cli::byte_size(binding.type, binding.dims);
      binding.engine = binding.growing->memory();
      if (!binding.host || bytes > binding.bytes) binding.host = place_.host_memory(bytes);
      binding.bytes = bytes;
    }
    if (binding.is_copied() && binding.bytes)
      check_cuda(calls,
                 calls.to_host(binding.host.get(), reinterpret_cast<unsigned long long>(binding.engine.get()),
                               binding.bytes, stream.get()),
                 "copying an output");
  }
}

std::vector<HostTensor> IoBindings::outputs() const {
  std::vector<HostTensor> tensors;
  for (const IoBinding& binding : bindings_) {
    if (binding.is_input) continue;
    const bool grown_here = binding.growing && !place_.has_copies();
    const std::vector<int64_t> dims = grown_here ? cli::to_vector(binding.growing->dims()) : binding.dims;
    const std::shared_ptr<void>& memory = grown_here ? binding.growing->memory() : binding.host;
    HostTensor& tensor = tensors.emplace_back(HostTensor{binding.name, binding.type, dims, {}});
    const auto* data = static_cast<const std::byte*>(memory.get());
    if (data) tensor.data.assign(data, data + cli::byte_size(binding.type, dims));
  }
  return tensors;
}

}  // namespace lathe::trtexec
