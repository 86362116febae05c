# liblathe_wrapper.so and that of generation 10: the engine wrapper (lathe_wrapper.h), which calls the interface's objects and
# the CUDA driver, and no function of a runtime library. Of other folders it has what it uses.
file(GLOB wrapper_sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} wrapper/*.cpp)
list(APPEND wrapper_sources api/convert.cpp api/json.cpp api/report.cpp plugin/types.cpp)
set(wrapper_device_sources base/dtype.cpp base/atomic_file.cpp base/file.cpp base/file_lock.cpp base/format.cpp base/hash.cpp base/log.cpp base/result.cpp base/utf8.cpp
    device/cuda/captured_graph.cpp device/cuda/context.cpp device/cuda/device_properties.cpp device/cuda/driver.cpp
    device/cuda/memory.cpp device/cuda/order_event.cpp device/cuda/shared_library.cpp device/cuda/stream.cpp)

# lathe_add_wrapper_objects(NAME GENERATION source...)
function(lathe_add_wrapper_objects name generation)
  add_library(${name} OBJECT ${ARGN})
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Os> -ffunction-sections -fdata-sections
                         $<$<EQUAL:${generation},10>:-Wno-deprecated-declarations>)
  target_compile_definitions(${name} PRIVATE LATHE_WITHOUT_CUDA_HEADERS LATHE_TENSORRT_MAJOR=${generation})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include ${generated})
  target_link_libraries(${name} PRIVATE Threads::Threads)
  target_precompile_headers(${name} REUSE_FROM lathe_objects)
endfunction()
lathe_add_wrapper_objects(lathe_wrapper_device_objects 11 ${wrapper_device_sources})

# lathe_add_wrapper(NAME GENERATION)
function(lathe_add_wrapper name generation)
  lathe_add_wrapper_objects(${name}_objects ${generation} ${wrapper_sources})
  lathe_add_shared(${name} $<TARGET_OBJECTS:${name}_objects> $<TARGET_OBJECTS:lathe_wrapper_device_objects>)
  target_link_options(${name} PRIVATE ${LATHE_SMALL_LINK_OPTIONS})
endfunction()
lathe_add_wrapper(lathe_wrapper 11)
lathe_add_wrapper(lathe_wrapper_10 10)
target_compile_definitions(lathe_wrapper_10 INTERFACE LATHE_TENSORRT_MAJOR=10)
lathe_install(wrapper lathe_wrapper lathe_wrapper_10)
