# CPU kernels are compiled once per ISA level. A file named *_simd.cpp under src/kernels/cpu is built for
# every level below, each time with LATHE_ISA set to the level's namespace; the choice is made at run time.
# See src/kernels/cpu/isa.h.
set(LATHE_ISA_LEVELS baseline)
set(LATHE_ISA_FLAGS_baseline "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(LATHE_ISA_LEVELS baseline avx2 avx512)
  set(LATHE_ISA_FLAGS_baseline -march=x86-64-v2)
  set(LATHE_ISA_FLAGS_avx2 -march=x86-64-v3)
  set(LATHE_ISA_FLAGS_avx512 -march=x86-64-v4 -mprefer-vector-width=512)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # g++ 12 warns of "uninitialized" values inside its own AVX-512 header (GCC bug 105593).
    list(APPEND LATHE_ISA_FLAGS_avx512 -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
endif()

function(lathe_add_simd_kernels out_objects)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/cpu/*_simd.cpp)
  set(objects)
  foreach(level IN LISTS LATHE_ISA_LEVELS)
    if(sources)
      add_library(kernels_${level} OBJECT ${sources})
      target_include_directories(kernels_${level} PRIVATE ${CMAKE_SOURCE_DIR}/src)
      # Loops are vectorised as with g++ -O3, whose unswitching and peeling take a third longer to compile and gain nothing here.
      target_compile_options(kernels_${level} PRIVATE ${LATHE_ISA_FLAGS_${level}}
        $<IF:$<CONFIG:Sanitize>,-O1,-O2> "$<$<CXX_COMPILER_ID:GNU>:-ftree-vectorize;-fvect-cost-model>" -ffp-contract=fast)
      target_precompile_headers(kernels_${level} PRIVATE ${LATHE_STANDARD_HEADERS} ${CMAKE_SOURCE_DIR}/src/kernels/cpu/simd.h)
      target_compile_definitions(kernels_${level} PRIVATE LATHE_ISA=${level} LATHE_ISA_LEVEL_${level}=1)
      list(APPEND objects $<TARGET_OBJECTS:kernels_${level}>)
    endif()
  endforeach()
  set(${out_objects} ${objects} PARENT_SCOPE)
endfunction()
