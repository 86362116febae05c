# Sources of a folder compile together, as far as that cannot change what they mean: see cmake/unity_groups.py. Lint
# compiles each of src/ and tools/ by itself, so each includes what it uses.
option(LATHE_UNITY "Compile sources of a folder together" ON)
find_program(LATHE_PYTHON NAMES python3)

# lathe_compile_together(target...): chooses the groups of these targets' sources, again whenever a source changes.
function(lathe_compile_together)
  if(NOT LATHE_UNITY OR NOT LATHE_PYTHON)
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/unity_groups.py
               ${CMAKE_SOURCE_DIR}/cmake/cpp_text.py)
  set(lines "")
  foreach(target IN LISTS ARGN)
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
      get_filename_component(source ${source} ABSOLUTE)
      get_source_file_property(generated ${source} GENERATED)
      if(source MATCHES "\\.cpp$" AND NOT generated)
        string(APPEND lines "${target}|${source}\n")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
      endif()
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endforeach()
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/unity_sources.txt "${lines}")
  execute_process(COMMAND ${LATHE_PYTHON} ${CMAKE_SOURCE_DIR}/cmake/unity_groups.py --root ${CMAKE_SOURCE_DIR}/src
    --root ${CMAKE_SOURCE_DIR}/include --root ${CMAKE_SOURCE_DIR}/tools --root ${CMAKE_SOURCE_DIR}/tests
    --kept ${CMAKE_CURRENT_BINARY_DIR}/unity_groups.txt
    INPUT_FILE ${CMAKE_CURRENT_BINARY_DIR}/unity_sources.txt OUTPUT_VARIABLE rows COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" rows "${rows}")
  foreach(row IN LISTS rows)
    string(REGEX MATCH "^([^|]*)\\|(.*)$" match "${row}")
    set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP ${CMAKE_MATCH_1})
  endforeach()
endfunction()
