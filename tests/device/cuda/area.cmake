lathe_use_fake_cuda(test_device_cuda)
# NVIDIA's headers, where they are installed, say whether our types are their types.
find_path(LATHE_CUDA_HEADERS cuda.h PATHS /usr/local/cuda/include)
find_path(LATHE_CUDNN_HEADERS cudnn_graph.h PATHS /usr/local/cuda/include /usr/local/include)
find_path(LATHE_CUBLASLT_HEADERS cublasLt.h PATHS /usr/local/cuda/include)
if(LATHE_CUDA_HEADERS)
  set_source_files_properties(${area}/types_test.cpp PROPERTIES
    INCLUDE_DIRECTORIES ${LATHE_CUDA_HEADERS} COMPILE_DEFINITIONS LATHE_HAS_CUDA_HEADER)
endif()
if(LATHE_CUDNN_HEADERS AND LATHE_CUDA_HEADERS)
  set_source_files_properties(${area}/cudnn_types_test.cpp PROPERTIES
    INCLUDE_DIRECTORIES "${LATHE_CUDNN_HEADERS};${LATHE_CUDA_HEADERS}" COMPILE_DEFINITIONS LATHE_HAS_CUDNN_HEADER)
endif()
if(LATHE_CUBLASLT_HEADERS)
  set_source_files_properties(${area}/cublaslt_types_test.cpp PROPERTIES
    INCLUDE_DIRECTORIES ${LATHE_CUBLASLT_HEADERS} COMPILE_DEFINITIONS LATHE_HAS_CUBLASLT_HEADER)
endif()
