file(GLOB cuda_test_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda/*.cpp)
list(FILTER cuda_test_sources EXCLUDE REGEX "_test\\.cpp$")
target_sources(test_cuda PRIVATE ${cuda_test_sources})
target_link_libraries(test_cuda PRIVATE lathe_emulated_compiler ${CMAKE_DL_LIBS})
add_dependencies(test_cuda lathe_emulator fake_nvrtc)
# The stand-in driver takes the place of libcuda.so.1; its variants are opened by path.
target_link_libraries(test_cuda PRIVATE fake_cuda_driver)
target_compile_definitions(test_cuda PRIVATE FAKE_NVRTC="$<TARGET_FILE:fake_nvrtc>")
foreach(variant IN ITEMS fake_cuda_driver fake_cuda_driver_without_launch fake_cuda_driver_without_options
        fake_cublaslt fake_cublaslt_without_check fake_cudnn)
  string(TOUPPER ${variant} macro)
  target_compile_definitions(test_cuda PRIVATE ${macro}="$<TARGET_FILE:${variant}>")
  add_dependencies(test_cuda ${variant})
endforeach()
# NVIDIA's header, where it is installed, says whether our types are its types.
find_path(LATHE_CUDA_HEADERS cuda.h PATHS /usr/local/cuda/include)
if(LATHE_CUDA_HEADERS)
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/types_test.cpp PROPERTIES
    INCLUDE_DIRECTORIES ${LATHE_CUDA_HEADERS} COMPILE_DEFINITIONS LATHE_HAS_CUDA_HEADER)
endif()
find_path(LATHE_CUDNN_HEADERS cudnn_graph.h PATHS /usr/local/cuda/include /usr/local/include)
if(LATHE_CUDNN_HEADERS AND LATHE_CUDA_HEADERS)
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/cudnn_types_test.cpp PROPERTIES
    INCLUDE_DIRECTORIES "${LATHE_CUDNN_HEADERS};${LATHE_CUDA_HEADERS}" COMPILE_DEFINITIONS LATHE_HAS_CUDNN_HEADER)
endif()
find_path(LATHE_CUBLASLT_HEADERS cublasLt.h PATHS /usr/local/cuda/include)
if(LATHE_CUBLASLT_HEADERS)
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/cublaslt_types_test.cpp PROPERTIES
    INCLUDE_DIRECTORIES ${LATHE_CUBLASLT_HEADERS} COMPILE_DEFINITIONS LATHE_HAS_CUBLASLT_HEADER)
endif()
