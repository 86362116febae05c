# Libraries under TensorRT's names, lib/compat/<generation>: lib<name>.so.<generation> with the functions that programs find
# by name. They hold no code. Each is a filter (DT_FILTER): whoever looks up one of its names gets that of the library that
# implements the generation, of which a process then has one copy, whichever of these it opens.
set(runtime_functions createInferRuntime_INTERNAL createInferRefitter_INTERNAL getPluginRegistry getLogger
    getInferLibVersion getInferLibMajorVersion getInferLibMinorVersion getInferLibPatchVersion getInferLibBuildVersion)
set(LATHE_COMPAT_nvinfer lathe ${runtime_functions} createInferBuilder_INTERNAL getBuilderPluginRegistry
    getBuilderSafePluginRegistry setInternalLibraryPath)
set(LATHE_COMPAT_nvonnxparser lathe createNvOnnxParser_INTERNAL createNvOnnxParserRefitter_INTERNAL getNvOnnxParserVersion)
set(LATHE_COMPAT_nvinfer_plugin lathe initLibNvInferPlugins)
set(LATHE_COMPAT_nvinfer_lean lathe_lean ${runtime_functions})
set(LATHE_COMPAT_nvinfer_dispatch lathe_dispatch ${runtime_functions})

# lathe_name_compat(TARGET NAME GENERATION COMPONENT): the target becomes lib<NAME>.so.<GENERATION>. `make build` leaves these
# out, and installing what it has built does, too.
function(lathe_name_compat target name generation component)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} VERSION ${generation} SOVERSION ${generation}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/compat/${generation})
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/compat/${generation} COMPONENT ${component}
          NAMELINK_COMPONENT dev OPTIONAL)
endfunction()

# lathe_add_compat(GENERATION SUFFIX): its libraries, which are filters of lathe<SUFFIX> and lathe_lean<SUFFIX>.
function(lathe_add_compat generation suffix)
  foreach(name nvinfer nvonnxparser nvinfer_plugin nvinfer_lean nvinfer_dispatch)
    set(functions ${LATHE_COMPAT_${name}})
    list(POP_FRONT functions implementation)
    set(text "// The names of lib${name}.so.${generation}; calls never come here.\n")
    foreach(function IN LISTS functions)
      string(APPEND text "extern \"C\" __attribute__((visibility(\"default\"))) void ${function}() {}\n")
    endforeach()
    set(source ${CMAKE_CURRENT_BINARY_DIR}/compat/${name}_${generation}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "${text}")
    set(target ${name}_${generation})
    add_library(${target} SHARED ${source} ${note_source})  # IRuntime::loadRuntime() takes what has the note
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    lathe_define_version(${target} ${LATHE_LIBRARY_VERSION} ${generation})
    add_dependencies(${target} ${implementation}${suffix})
    string(REGEX REPLACE "^lathe_?" "" component ${implementation})
    if(component STREQUAL "")
      set(component full)
    endif()
    lathe_name_compat(${target} ${name} ${generation} ${component})
    set_target_properties(${target} PROPERTIES BUILD_RPATH "$ORIGIN/../.." INSTALL_RPATH "$ORIGIN/../..")
    target_link_options(${target} PRIVATE -nostdlib "-Wl,--filter,$<TARGET_SONAME_FILE_NAME:${implementation}${suffix}>")
  endforeach()
endfunction()

# Generation 10: the interface compiled for its headers, and the same objects below it.
set(runtime_generation_10_sources ${generation_10_sources})
list(FILTER runtime_generation_10_sources INCLUDE REGEX "/src/(plugin|api/runtime|api/guest)/")
list(REMOVE_ITEM generation_10_sources ${runtime_generation_10_sources})
set_source_files_properties(${generation_10_sources} PROPERTIES UNITY_GROUP generation_10)
set_source_files_properties(${runtime_generation_10_sources} PROPERTIES UNITY_GROUP runtime_generation_10)
lathe_add_objects(lathe_api_10_objects ${api_sources} ${generation_10_sources} OPTIONS ${builder_option})
lathe_add_objects(lathe_runtime_api_10_objects ${runtime_api_sources} ${runtime_generation_10_sources}
                  OPTIONS ${runtime_option})
foreach(objects lathe_api_10_objects lathe_runtime_api_10_objects)
  target_compile_definitions(${objects} PRIVATE LATHE_TENSORRT_MAJOR=10 LATHE_WITHOUT_CUDA_HEADERS)
  target_compile_options(${objects} PRIVATE -Wno-deprecated-declarations)  # which they implement
  if(LATHE_UNITY AND LATHE_PYTHON)  # in the groups of the other generation
    set_target_properties(${objects} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
endforeach()
lathe_add_shared(lathe_10 ${LATHE_RUNTIME_OBJECTS} $<TARGET_OBJECTS:lathe_builder_objects>
  $<TARGET_OBJECTS:lathe_api_10_objects> $<TARGET_OBJECTS:lathe_runtime_api_10_objects>
  $<TARGET_OBJECTS:lathe_version_10_objects> ${PACKABLE_OBJECTS})
lathe_add_lean(lathe_lean_10 lathe_version_10_objects lathe_runtime_api_10_objects)
foreach(library lathe_10 lathe_lean_10)
  target_compile_definitions(${library} INTERFACE LATHE_TENSORRT_MAJOR=10)
  add_dependencies(${library} lathe_compiler)
endforeach()
lathe_install(full lathe_10)
lathe_install(lean lathe_lean_10)

# Plugins for engines of other versions: code of its own, for no other library has these names.
foreach(generation 10 11)
  set(target nvinfer_vc_plugin_${generation})
  add_library(${target} SHARED ${CMAKE_CURRENT_SOURCE_DIR}/compat/vc_plugin.cpp)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  target_compile_definitions(${target} PRIVATE LATHE_TENSORRT_MAJOR=${generation} LATHE_WITHOUT_CUDA_HEADERS)
  lathe_name_compat(${target} nvinfer_vc_plugin ${generation} lean)
endforeach()
lathe_add_compat(10 _10)
lathe_add_compat(11 "")
