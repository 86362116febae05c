// SPDX-License-Identifier: Apache-2.0
// Code modules and launches of the stand-in driver; control.h says what modules may be.
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <sstream>

#include "fake_cuda/driver/state.h"
#include "fake_cuda/tensor_map.h"

namespace fake_cuda {
namespace {

constexpr uint16_t kCudaMachine = 190;
constexpr std::string_view kText = "FAKE_CUBIN ";

using Emulate = int (*)(void* function, const unsigned grid[3], unsigned block, unsigned shared_bytes,
                        void** parameters, unsigned count, unsigned cluster);

// The emulator's entry, which is in what the module links to, or in the process.
Emulate find_emulator(void* library) {
  constexpr const char* kName = "lathe_emulate_launch";
  if (void* found = dlsym(library, kName)) return reinterpret_cast<Emulate>(found);
  if (void* found = dlsym(RTLD_DEFAULT, kName)) return reinterpret_cast<Emulate>(found);
  return nullptr;
}

size_t elf_size(const char* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof(header));
  return header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
}

CUresult load_library(const char* image, Module& module) {
  const int file = module.file = memfd_create("emulated_kernels", MFD_CLOEXEC);
  if (file < 0) return CUDA_ERROR_UNKNOWN;
  const size_t size = elf_size(image);
  const bool written = write(file, image, size) == static_cast<ssize_t>(size);
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (written) module.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return module.library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

// "kernel NAME PARAMETERS [threads=N] [shared=N] [maps=N] [ptx=N]"
CUresult parse_kernel(const std::string& line, Module& module) {
  std::istringstream words(line);
  std::string keyword, option;
  auto function = std::make_unique<Function>();
  if (!(words >> keyword >> function->name >> function->parameters) || keyword != "kernel")
    return CUDA_ERROR_INVALID_IMAGE;
  while (words >> option) {
    if (option.starts_with("threads=")) function->max_threads = std::stoi(option.substr(8));
    if (option.starts_with("shared=")) function->static_shared_bytes = std::stoi(option.substr(7));
    if (option.starts_with("maps=")) function->maps = std::stoi(option.substr(5));
    if (option.starts_with("ptx=")) function->architecture = std::stoi(option.substr(4));
  }
  function->module = &module;
  module.functions[function->name] = std::move(function);
  return CUDA_SUCCESS;
}

CUresult load_text(const char* image, Module& module) {
  std::istringstream lines(image + kText.size());
  std::string line;
  std::getline(lines, line);
  const DeviceConfig& device = state().devices[module.context->ordinal];
  const std::string wanted = "sm_" + std::to_string(10 * device.major + device.minor);
  if (line != wanted) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  module.text = true;
  while (std::getline(lines, line))
    if (const CUresult parsed = parse_kernel(line, module); parsed != CUDA_SUCCESS) return parsed;
  return CUDA_SUCCESS;
}

CUresult load(const char* image, Module& module) {
  if (std::memcmp(image, ELFMAG, SELFMAG) == 0) {
    Elf64_Ehdr header;
    std::memcpy(&header, image, sizeof(header));
    if (header.e_machine != kCudaMachine) return load_library(image, module);
    module.image.assign(image, elf_size(image));
    return CUDA_SUCCESS;
  }
  if (std::string_view(image).starts_with(kText)) return load_text(image, module);
  if (!std::strstr(image, ".version")) return CUDA_ERROR_INVALID_IMAGE;
  module.image = image;
  return CUDA_SUCCESS;
}

Function* find_function(Module& module, const std::string& name) {
  if (const auto found = module.functions.find(name); found != module.functions.end()) return found->second.get();
  auto function = std::make_unique<Function>();
  function->module = &module;
  function->name = name;
  if (module.library) {
    function->code = dlsym(module.library, name.c_str());
    const auto* count = static_cast<const unsigned*>(dlsym(module.library, "lathe_kernel_parameters"));
    if (!function->code || !count) return nullptr;
    function->parameters = static_cast<int>(*count);
    const auto* maps = static_cast<const unsigned*>(dlsym(module.library, "lathe_kernel_maps"));
    function->maps = maps ? static_cast<int>(*maps) : 0;
  } else if (module.text || module.image.find(name) == std::string::npos) {
    return nullptr;
  }
  return (module.functions[name] = std::move(function)).get();
}

// Functions are known by address; those of modules that were unloaded are not found.
Function* find_function(CUfunction handle) {
  for (auto& [address, module] : state().modules)
    for (auto& [name, function] : module->functions)
      if (function.get() == reinterpret_cast<Function*>(handle)) return function.get();
  return nullptr;
}

CUresult check_launch(const CUlaunchConfig& config, const Function& function, fake_cuda_launch& launch) {
  launch.cluster = 1;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) launch.cluster = attribute.value.clusterDim.x;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) launch.together = attribute.value.cooperative;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      launch.overlaps = attribute.value.programmaticStreamSerializationAllowed;
  }
  if (config.gridDimX == 0 || config.gridDimY == 0 || config.gridDimZ == 0 || config.gridDimX > 2147483647u ||
      config.gridDimY > 65535 || config.gridDimZ > 65535 || config.blockDimX == 0 || config.blockDimY != 1 ||
      config.blockDimZ != 1 || static_cast<int>(config.sharedMemBytes) > function.max_shared_bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (static_cast<int>(config.blockDimX) > function.max_threads) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (config.gridDimX % launch.cluster != 0 || launch.cluster > (function.large_clusters ? 16 : 8))
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  return CUDA_SUCCESS;
}

// Of a module that is a shared library.
struct Code {
  void* code;
  void* library;
};

CUresult run_launch(const fake_cuda_launch& launch, Code emulated, Context* context) {
  std::array<void*, 96> parameters{};
  fake_cuda_launch copy = launch;
  for (unsigned i = 0; i < copy.parameters; ++i) parameters[i] = &copy.values[i];
  std::pair<fake_cuda_kernel, void*> run{};
  {
    const std::lock_guard lock(state().mutex);
    state().launches.push_back(launch);
    state().stamps.push_back(current_stamp());
    const auto found = state().kernels.find(launch.name);
    if (found != state().kernels.end()) run = found->second;
  }
  if (emulated.code) {
    const Emulate emulate = find_emulator(emulated.library);
    if (!emulate) return CUDA_ERROR_NOT_SUPPORTED;
    if (emulate(emulated.code, copy.grid, copy.block, copy.shared_bytes, parameters.data(), copy.parameters,
                copy.together ? copy.grid[0] : copy.cluster) != 0) {
      const std::lock_guard lock(state().mutex);
      return context->fault = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
  } else if (run.first) {
    run.first(parameters.data(), copy.grid, run.second);
  }
  return CUDA_SUCCESS;
}

// Names live as long as the list of launches does.
const char* intern(const std::string& name) {
  static std::set<std::string> names;
  return names.insert(name).first->c_str();
}

// Of a tensor map's elements; 0 for types and forms that the library does not ask for.
uint32_t element_bytes(int type, int interleave, int swizzle, int fill) {
  constexpr int kPermuted128 = 3;
  if (interleave != 0 || swizzle != kPermuted128 || fill != 0) return 0;
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
      return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
      return 4;
    default:
      return 0;
  }
}

CUresult write_map(int type, fake_cuda::TensorMapContent& content, CUtensorMap* map) {
  content.rounds = type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
  std::memcpy(map, &content, sizeof content);
  return CUDA_SUCCESS;
}

}  // namespace

Module::~Module() {
  if (library) dlclose(library);
  if (file >= 0) close(file);
}

}  // namespace fake_cuda

namespace lathe::cuda {
extern "C" {

using fake_cuda::state;

CUresult cuLinkCreate_v2(unsigned, CUjit_option*, void**, CUlinkState* link) {
  FAKE_ENTER(Needs::context);
  auto made = std::make_unique<fake_cuda::Link>();
  made->context = fake_cuda::context_stack().back();
  fake_cuda::state().links.add(std::move(made), link);
  return CUDA_SUCCESS;
}

// Images of the stand-in's are what a cubin of theirs would be.
CUresult cuLinkAddData_v2(CUlinkState link, CUjitInputType type, void* data, size_t size, const char*, unsigned,
                          CUjit_option*, void**) {
  FAKE_ENTER(Needs::context);
  fake_cuda::Link* const found = fake_cuda::state().links.find(link);
  if (!found || type != CU_JIT_INPUT_PTX) return CUDA_ERROR_INVALID_VALUE;
  found->image.assign(static_cast<const char*>(data), size);
  fake_cuda::Module module;
  module.context = found->context;
  return fake_cuda::load(found->image.c_str(), module) == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

CUresult cuLinkComplete(CUlinkState link, void** cubin, size_t* size) {
  FAKE_ENTER(Needs::context);
  fake_cuda::Link* const found = fake_cuda::state().links.find(link);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  *cubin = found->image.data();
  *size = found->image.size();
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState link) {
  FAKE_ENTER_RELEASE(Needs::context);
  fake_cuda::Link* const found = fake_cuda::state().links.find(link);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  fake_cuda::state().links.remove(found);
  return entry.result;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  FAKE_ENTER(Needs::context);
  if (const CUresult forbidden = fake_cuda::check_capture(); forbidden != CUDA_SUCCESS) return forbidden;
  auto made = std::make_unique<fake_cuda::Module>();
  made->context = fake_cuda::context_stack().back();
  const CUresult loaded = fake_cuda::load(static_cast<const char*>(image), *made);
  if (loaded == CUDA_SUCCESS) state().modules.add(std::move(made), module);
  return loaded;
}

CUresult cuModuleUnload(CUmodule module) {
  FAKE_ENTER_RELEASE(Needs::context);
  fake_cuda::Module* found = state().modules.find(module);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  state().modules.remove(found);
  return entry.result;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  FAKE_ENTER(Needs::context);
  fake_cuda::Module* found = state().modules.find(module);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  fake_cuda::Function* wanted = fake_cuda::find_function(*found, name);
  if (!wanted) return CUDA_ERROR_NOT_FOUND;
  *function = reinterpret_cast<CUfunction>(wanted);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  FAKE_ENTER(Needs::context);
  const fake_cuda::Function* found = fake_cuda::find_function(function);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = found->max_threads;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = found->static_shared_bytes;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = found->architecture;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  FAKE_ENTER(Needs::context);
  fake_cuda::Function* found = fake_cuda::find_function(function);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value + found->static_shared_bytes > 227 << 10) return CUDA_ERROR_INVALID_VALUE;
    found->max_shared_bytes = value;
  }
  if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) found->large_clusters = value != 0;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  FAKE_ENTER(Needs::context);
  const fake_cuda::Function* found = fake_cuda::find_function(function);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  if (found->parameters < 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (index >= static_cast<size_t>(found->parameters)) return CUDA_ERROR_INVALID_VALUE;
  constexpr size_t kMapBytes = sizeof(CUtensorMap);
  const auto maps = static_cast<size_t>(found->maps);
  *size = index < maps ? kMapBytes : 8;
  *offset = index < maps ? kMapBytes * index : kMapBytes * maps + 8 * (index - maps);
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  FAKE_ENTER(Needs::context);
  const fake_cuda::Function* found = fake_cuda::find_function(function);
  if (!found || extra) return CUDA_ERROR_INVALID_HANDLE;
  fake_cuda_launch launch{};
  launch.name = fake_cuda::intern(found->name);
  launch.grid[0] = config->gridDimX;
  launch.grid[1] = config->gridDimY;
  launch.grid[2] = config->gridDimZ;
  launch.block = config->blockDimX;
  launch.shared_bytes = config->sharedMemBytes;
  if (const CUresult bad = fake_cuda::check_launch(*config, *found, launch); bad != CUDA_SUCCESS) return bad;
  launch.parameters = found->parameters < 0 ? 0 : found->parameters;
  // Maps are copied with the other parameters; kernels get their addresses.
  const auto maps = std::make_shared<std::vector<CUtensorMap>>(static_cast<size_t>(found->maps));
  for (unsigned i = 0; i < launch.parameters; ++i) {
    if (i >= maps->size()) {
      std::memcpy(&launch.values[i], parameters[i], 8);
      continue;
    }
    std::memcpy(&(*maps)[i], parameters[i], sizeof(CUtensorMap));
    launch.values[i] = reinterpret_cast<uintptr_t>(&(*maps)[i]);
  }
  const auto run = [launch, maps, code = found->code, library = found->module->library,
                    context = found->module->context] {
    return fake_cuda::run_launch(launch, {code, library}, context);
  };
  return fake_cuda::submit(config->hStream, {found, run}, entry);
}

// Of the form that the library asks for: see fake_cuda/tensor_map.h.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, int type, uint32_t rank, void* address, const uint64_t* dims,
                                const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave,
                                int swizzle, int, int fill) {
  FAKE_ENTER(Needs::nothing);
  fake_cuda::TensorMapContent content;
  const uint32_t bytes = fake_cuda::element_bytes(type, interleave, swizzle, fill);
  if (bytes == 0 || !fake_cuda::make_tensor_map(bytes, rank, address, dims, strides, box, content))
    return CUDA_ERROR_INVALID_VALUE;
  for (uint32_t i = 0; i < rank; ++i)
    if (steps[i] != 1) return CUDA_ERROR_INVALID_VALUE;
  return fake_cuda::write_map(type, content, map);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, int type, uint32_t rank, void* address, const uint64_t* dims,
                                 const uint64_t* strides, const int* lower_corner, const int* upper_corner,
                                 uint32_t channels, uint32_t pixels, const uint32_t* steps, int interleave, int swizzle,
                                 int, int fill) {
  FAKE_ENTER(Needs::nothing);
  fake_cuda::TensorMapContent content;
  const uint32_t bytes = fake_cuda::element_bytes(type, interleave, swizzle, fill);
  if (bytes == 0 || !fake_cuda::make_window_map(bytes, rank, address, dims, strides, lower_corner, upper_corner,
                                                channels, pixels, steps, content))
    return CUDA_ERROR_INVALID_VALUE;
  return fake_cuda::write_map(type, content, map);
}

}  // extern "C"
}  // namespace lathe::cuda
