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

set(LATHE_CPU_KERNELS all CACHE STRING "Levels of CPU kernels: all, or native for the best one of this machine alone (make demo)")
set(isa_only "")
if(LATHE_CPU_KERNELS STREQUAL native)
  include(CheckCXXSourceRuns)
  set(isa_only baseline)
  set(wider ${LATHE_ISA_LEVELS})
  list(REMOVE_ITEM wider baseline)
  foreach(level IN LISTS wider)  # as best_supported() in src/base/isa_level.cpp
    set(features_avx2 avx2 fma bmi2)
    set(features_avx512 avx512f avx512bw avx512cd avx512dq avx512vl)
    list(TRANSFORM features_${level} REPLACE "(.+)" "__builtin_cpu_supports(\"\\1\")" OUTPUT_VARIABLE checks)
    list(JOIN checks " && " supported)
    check_cxx_source_runs("int main() { return ${supported} ? 0 : 1; }" LATHE_CPU_HAS_${level})
    if(LATHE_CPU_HAS_${level})
      set(isa_only ${level})
    endif()
  endforeach()
  set(LATHE_ISA_LEVELS ${isa_only})
elseif(NOT LATHE_CPU_KERNELS STREQUAL all)
  message(FATAL_ERROR "LATHE_CPU_KERNELS is '${LATHE_CPU_KERNELS}', but must be all or native")
endif()
if(isa_only)
  set(isa_only "#define LATHE_ISA_ONLY ${isa_only}\n")
endif()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/src/generated/cpu_isa_levels.inc CONTENT "${isa_only}")

function(lathe_add_simd_kernels out_objects)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/cpu/*_simd.cpp)
  set(objects)
  foreach(level IN LISTS LATHE_ISA_LEVELS)
    if(sources)
      add_library(kernels_${level} OBJECT ${sources})
      target_include_directories(kernels_${level} PRIVATE ${CMAKE_SOURCE_DIR}/src)
      # CPUs without AVX2 are rare: their code is compiled to be small, as the lean runtime is to be.
      set(optimisation -O2)
      if(level STREQUAL baseline AND level_count GREATER 1)
        set(optimisation -Os)
      endif()
      # Loops are vectorised as with g++ -O3, whose unswitching and peeling take a third longer to compile and gain nothing here.
      target_compile_options(kernels_${level} PRIVATE ${LATHE_ISA_FLAGS_${level}}
        $<IF:$<CONFIG:Sanitize>,-O1,${optimisation}> "$<$<CXX_COMPILER_ID:GNU>:-ftree-vectorize;-fvect-cost-model>" -ffp-contract=fast)
      target_precompile_headers(kernels_${level} PRIVATE ${LATHE_STANDARD_HEADERS} ${CMAKE_SOURCE_DIR}/src/kernels/cpu/simd.h)
      target_compile_definitions(kernels_${level} PRIVATE LATHE_ISA=${level} LATHE_ISA_LEVEL_${level}=1)
      list(APPEND objects $<TARGET_OBJECTS:kernels_${level}>)
    endif()
  endforeach()
  set(${out_objects} ${objects} PARENT_SCOPE)
endfunction()

# Libraries that are to be small have the kernels packed, of which a process unpacks those of its processor, and what calls them.
# Not for tools that look into the code of kernels, such as debuggers, profilers and sanitizers.
find_program(LATHE_PYTHON NAMES python3)
if(LATHE_PYTHON)  # itself, where that is a script that looks for it, which takes longer than to start
  execute_process(COMMAND ${LATHE_PYTHON} -c "import sys; print(sys.executable)" OUTPUT_VARIABLE python
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(LATHE_PYTHON ${python} CACHE FILEPATH "Python of the build and of checks" FORCE)
endif()
set(packs_by_default OFF)
list(LENGTH LATHE_ISA_LEVELS level_count)
if(level_count GREATER 1 AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND LATHE_PYTHON AND MOLD AND
   NOT CMAKE_BUILD_TYPE STREQUAL Debug AND NOT LATHE_SANITIZE AND NOT LATHE_FUZZERS)
  set(packs_by_default ON)
endif()
option(LATHE_PACKED_KERNELS "Compress the CPU kernels in liblathe_lean.so" ${packs_by_default})
if(LATHE_PACKED_KERNELS AND NOT MOLD)
  message(FATAL_ERROR "LATHE_PACKED_KERNELS needs the linker mold, whose order of sections cmake/pack_code.py knows")
endif()

# lathe_pack_simd_kernels(OUT): the object file with the kernels of all levels, packed.
function(lathe_pack_simd_kernels out)
  set(packed ${CMAKE_CURRENT_BINARY_DIR}/packed_kernels.o)
  set(rows "")
  set(objects "")
  foreach(level IN LISTS LATHE_ISA_LEVELS)
    set(of_level "$<FILTER:$<TARGET_OBJECTS:kernels_${level}>,INCLUDE,[.]o(bj)?$>")  # not the precompiled header
    list(APPEND rows "${level}=$<JOIN:${of_level},$<COMMA>>")
    list(APPEND objects ${of_level})
  endforeach()
  add_custom_command(OUTPUT ${packed}
    COMMAND ${LATHE_PYTHON} ${CMAKE_SOURCE_DIR}/cmake/pack_kernels.py --compiler ${CMAKE_CXX_COMPILER} --out ${packed} ${rows}
    DEPENDS ${CMAKE_SOURCE_DIR}/cmake/pack_kernels.py ${CMAKE_SOURCE_DIR}/cmake/deflate.py ${objects} VERBATIM)
  set_source_files_properties(${packed} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set(${out} ${packed} PARENT_SCOPE)
endfunction()

# lathe_mark_packed_code(OUT object... OTHERS object...): one object file of the first, whose functions are to be packed, and which
# the code of the others does not call but by pointers.
function(lathe_mark_packed_code out)
  cmake_parse_arguments(ARG "" "" "OTHERS" ${ARGN})
  set(marked ${CMAKE_CURRENT_BINARY_DIR}/packed_code.o)
  add_custom_command(OUTPUT ${marked}
    COMMAND ${LATHE_PYTHON} ${CMAKE_SOURCE_DIR}/cmake/pack_code.py mark --compiler ${CMAKE_CXX_COMPILER} --out ${marked}
            ${ARG_UNPARSED_ARGUMENTS} --others ${ARG_OTHERS}
    DEPENDS ${CMAKE_SOURCE_DIR}/cmake/pack_code.py ${ARG_UNPARSED_ARGUMENTS} ${ARG_OTHERS} COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties(${marked} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set(${out} ${marked} PARENT_SCOPE)
endfunction()

# lathe_pack_marked_code(TARGET): packs them in this library, once it is linked.
function(lathe_pack_marked_code target)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/pack_code.py ${CMAKE_SOURCE_DIR}/cmake/deflate.py)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${LATHE_PYTHON} ${CMAKE_SOURCE_DIR}/cmake/pack_code.py pack $<TARGET_FILE:${target}> VERBATIM)
endfunction()

# lathe_trim_archive(TARGET): tables for unwinding in this static library are as exceptions need them.
function(lathe_trim_archive target)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${LATHE_PYTHON} ${CMAKE_SOURCE_DIR}/cmake/trim_unwind.py --archive $<TARGET_FILE:${target}> VERBATIM)
endfunction()

# lathe_trim_objects(OUT NAME object...): one object file of these, with such tables.
function(lathe_trim_objects out name)
  if(NOT LATHE_PACKED_KERNELS)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(trimmed ${CMAKE_CURRENT_BINARY_DIR}/${name}_trimmed.o)
  set(${out} ${trimmed} PARENT_SCOPE)
  get_property(is_there GLOBAL PROPERTY LATHE_TRIMMED_${name})
  if(is_there)
    return()
  endif()
  set_property(GLOBAL PROPERTY LATHE_TRIMMED_${name} ON)
  if(LATHE_WHOLE_DISPATCH AND name MATCHES "^lathe_dispatch")
    set(whole --whole)
  endif()
  add_custom_command(OUTPUT ${trimmed}
    COMMAND ${LATHE_PYTHON} ${CMAKE_SOURCE_DIR}/cmake/trim_unwind.py --compiler ${CMAKE_CXX_COMPILER} --out ${trimmed} ${whole} ${ARGN}
    DEPENDS ${CMAKE_SOURCE_DIR}/cmake/trim_unwind.py ${ARGN} COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties(${trimmed} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
endfunction()
