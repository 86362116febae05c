// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/device_properties.h"

namespace lathe::cuda {
namespace {

Result<> check(CUresult result, int ordinal) {
  if (result == CUDA_SUCCESS) return {};
  return fail(driver_error(result, fmt::format("asking for the properties of device {}", ordinal)));
}

Result<> read_attributes(const Driver& driver, DeviceProperties& properties) {
  int pools = 0, clusters = 0, integrated = 0;
  const struct {
    CUdevice_attribute attribute;
    int& value;
  } wanted[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, properties.major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, properties.minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, properties.multiprocessors},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, properties.clock_khz},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, properties.memory_clock_khz},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, properties.memory_bus_bits},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, properties.l2_bytes},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, properties.max_threads},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, properties.max_shared_bytes},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, properties.core_shared_bytes},
      {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, properties.texture_alignment},
      {CU_DEVICE_ATTRIBUTE_INTEGRATED, integrated},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, properties.max_grid[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, properties.max_grid[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, properties.max_grid[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, properties.persisting_l2_bytes},
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, pools},
      {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, clusters},
  };
  for (const auto& [attribute, value] : wanted)
    LATHE_TRY(check(driver.cuDeviceGetAttribute(&value, attribute, properties.device), properties.ordinal));
  properties.memory_pools = pools != 0 && driver.has_pools();
  properties.clusters = clusters != 0;
  properties.is_integrated = integrated != 0;
  return {};
}

}  // namespace

Result<int> count_devices(const Driver& driver) {
  int count = 0;
  const CUresult result = driver.cuDeviceGetCount(&count);
  if (result == CUDA_ERROR_NO_DEVICE) return 0;
  if (result != CUDA_SUCCESS) return fail(driver_error(result, "counting the CUDA devices"));
  return count;
}

Result<DeviceProperties> read_properties(const Driver& driver, int ordinal) {
  DeviceProperties properties;
  properties.ordinal = ordinal;
  LATHE_TRY(check(driver.cuDeviceGet(&properties.device, ordinal), ordinal));
  char name[256] = {};
  LATHE_TRY(check(driver.cuDeviceGetName(name, sizeof(name), properties.device), ordinal));
  properties.name = name;
  LATHE_TRY(check(driver.cuDeviceTotalMem(&properties.memory_bytes, properties.device), ordinal));
  LATHE_TRY(read_attributes(driver, properties));
  return properties;
}

}  // namespace lathe::cuda
