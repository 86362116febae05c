# A plugin library, for the registry to load.
add_library(counted_plugin MODULE ${CMAKE_CURRENT_LIST_DIR}/counted_plugin.cpp)
target_include_directories(counted_plugin PRIVATE ${CMAKE_SOURCE_DIR}/include)
add_dependencies(test_plugin counted_plugin)
target_compile_definitions(test_plugin PRIVATE COUNTED_PLUGIN="$<TARGET_FILE:counted_plugin>")
