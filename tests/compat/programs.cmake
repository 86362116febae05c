# Opens any library by its path; those of cmake/versions.cmake among them.
add_executable(version_runner ${CMAKE_CURRENT_LIST_DIR}/version_runner.cpp)
target_include_directories(version_runner PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(version_runner PRIVATE LATHE_WITHOUT_CUDA_HEADERS)
target_link_libraries(version_runner PRIVATE ${CMAKE_DL_LIBS})
foreach(library lathe lathe_lean lathe_dispatch)
  add_dependencies(version_runner ${library} ${library}_0_2 ${library}_0_3)
endforeach()
