# liblathe_dispatch.so and that of generation 10: they read a plan's header and have another library make the engine. Their
# sources are some of the runtime's, compiled to be small, and of those what is used.
set(dispatch_sources base/file.cpp base/hash.cpp base/hex.cpp base/inflate.cpp base/library_note.cpp base/log.cpp base/own_file.cpp
    base/plain_format.cpp base/result.cpp plan/compatibility.cpp plan/foreign_prefix.cpp plan/header.cpp plan/public_keys.cpp)
file(GLOB dispatch_api_sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} api/guest/*.cpp api/dispatch/*.cpp)
list(APPEND dispatch_api_sources api/convert.cpp api/deprecation.cpp api/entry_point.cpp api/living_products.cpp api/report.cpp api/settings.cpp
     api/runtime/entry_points.cpp api/runtime/other_versions.cpp api/runtime/plan_bytes.cpp api/runtime/runtime.cpp
     api/runtime/trust_policy.cpp api/runtime/version_text.cpp plugin/registry.cpp)

# What is compiled of all files at once is a twelfth smaller.
set(dispatch_option $<$<CONFIG:Release>:-Oz>)
# lathe_trim_objects() makes one object of them.
set(LATHE_WHOLE_DISPATCH OFF)
if(LATHE_PACKED_KERNELS AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_BUILD_TYPE STREQUAL Release)
  set(LATHE_WHOLE_DISPATCH ON)
  list(APPEND dispatch_option -flto)
endif()

# lathe_add_small_objects(NAME GENERATION source...): without a precompiled header, which is made for other options.
function(lathe_add_small_objects name generation)
  add_library(${name} OBJECT ${ARGN})
  target_compile_options(${name} PRIVATE ${dispatch_option} -ffunction-sections -fdata-sections
                         $<$<EQUAL:${generation},10>:-Wno-deprecated-declarations>)
  target_compile_definitions(${name} PRIVATE LATHE_RUNTIMES_ALONE LATHE_WITHOUT_CUDA_HEADERS LATHE_TENSORRT_MAJOR=${generation})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(${name} PRIVATE Threads::Threads)
  if(LATHE_UNITY AND LATHE_PYTHON)  # in the groups that they have in the other libraries
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
endfunction()
lathe_add_small_objects(lathe_dispatch_objects 11 ${dispatch_sources})
lathe_add_small_objects(lathe_dispatch_api_objects 11 ${dispatch_api_sources})
lathe_add_small_objects(lathe_dispatch_api_10_objects 10 ${dispatch_api_sources} api/runtime/runtime_10_16.cpp
                        plugin/registry_10_16.cpp)

# lathe_add_dispatch(NAME version-objects interface-objects): one of that version and generation.
function(lathe_add_dispatch name version interface)
  lathe_trim_objects(objects ${interface} $<TARGET_OBJECTS:lathe_dispatch_objects> $<TARGET_OBJECTS:${interface}>)
  lathe_add_shared(${name} ${objects} $<TARGET_OBJECTS:${version}> $<TARGET_OBJECTS:lathe_unused_objects>)
  target_link_options(${name} PRIVATE ${LATHE_SMALL_LINK_OPTIONS})
endfunction()
lathe_add_dispatch(lathe_dispatch lathe_version_objects lathe_dispatch_api_objects)
lathe_add_dispatch(lathe_dispatch_10 lathe_version_10_objects lathe_dispatch_api_10_objects)
target_compile_definitions(lathe_dispatch_10 INTERFACE LATHE_TENSORRT_MAJOR=10)
lathe_install(dispatch lathe_dispatch lathe_dispatch_10)
