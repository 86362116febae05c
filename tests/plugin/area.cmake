# A plugin library, for the registry to load.
add_library(counted_plugin MODULE ${CMAKE_CURRENT_LIST_DIR}/counted_plugin.cpp)
target_include_directories(counted_plugin PRIVATE ${CMAKE_SOURCE_DIR}/include)
add_dependencies(test_plugin counted_plugin)
target_compile_definitions(test_plugin PRIVATE COUNTED_PLUGIN="$<TARGET_FILE:counted_plugin>")
foreach(lie RANGE 1 6)
  add_library(lying_plugin_${lie} MODULE ${CMAKE_CURRENT_LIST_DIR}/lying_plugin.cpp)
  target_include_directories(lying_plugin_${lie} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  target_compile_definitions(lying_plugin_${lie} PRIVATE LATHE_LIE=${lie})
  add_dependencies(test_plugin lying_plugin_${lie})
  list(APPEND lying_plugins "\"$<TARGET_FILE:lying_plugin_${lie}>\"")
endforeach()
list(JOIN lying_plugins "," lying_plugins)
target_compile_definitions(test_plugin PRIVATE "LYING_PLUGINS=${lying_plugins}")
record_api_calls(test_plugin)
# A plugin library for another process, which sees the plan and never the builder.
add_library(scale_library MODULE ${CMAKE_CURRENT_LIST_DIR}/scale_library.cpp)
target_include_directories(scale_library PRIVATE ${CMAKE_SOURCE_DIR}/include)
add_dependencies(test_plugin scale_library plan_runner_lathe_lean)
target_compile_definitions(test_plugin PRIVATE SCALE_LIBRARY="$<TARGET_FILE:scale_library>"
                           PLAN_RUNNER="$<TARGET_FILE:plan_runner_lathe_lean>")
# Some tests run on the stand-in for a GPU.
lathe_use_fake_cuda(test_plugin)
# Device code of this build alone: what another folder compiled for the stand-in does not run here.
list(APPEND test_environment LATHE_CACHE_DIR=${CMAKE_BINARY_DIR}/plugin_cache)
