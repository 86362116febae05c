lathe_use_fake_cuda(test_kernels_cuda)
file(GLOB kernels_cuda_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cuda/*.cpp)
list(FILTER kernels_cuda_sources EXCLUDE REGEX "_test\\.cpp$")
target_sources(test_kernels_cuda PRIVATE ${kernels_cuda_sources})
