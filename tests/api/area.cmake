# Every public header compiles alone, as C++17, without warnings.
file(GLOB public_headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/include/*.h
     ${CMAKE_SOURCE_DIR}/include/*/*.h)
set(alone_sources)
foreach(header IN LISTS public_headers)
  string(REPLACE "/" "_" stem ${header})
  set(alone ${CMAKE_CURRENT_BINARY_DIR}/headers_alone/${stem}.cpp)
  file(CONFIGURE OUTPUT ${alone} CONTENT "#include \"${header}\"\n")
  list(APPEND alone_sources ${alone})
endforeach()
add_library(headers_alone OBJECT ${alone_sources})
target_include_directories(headers_alone PRIVATE ${CMAKE_SOURCE_DIR}/include)
set_target_properties(headers_alone PROPERTIES CXX_STANDARD 17)
add_dependencies(test_api headers_alone)

# One program, linked with the whole library and with the runtime that links alone: lean_cli_test.py compares them.
foreach(library lathe lathe_lean)
  add_executable(plan_runner_${library} ${CMAKE_CURRENT_LIST_DIR}/plan_runner.cpp)
  target_link_libraries(plan_runner_${library} PRIVATE ${library} ${CMAKE_DL_LIBS})
endforeach()
target_compile_definitions(plan_runner_lathe_lean PRIVATE CHECK_NO_BUILDER)

# A profiler for NVTX.
add_library(range_recorder MODULE ${CMAKE_CURRENT_LIST_DIR}/range_recorder.cpp)
add_dependencies(test_api range_recorder)
target_compile_definitions(test_api PRIVATE RANGE_RECORDER="$<TARGET_FILE:range_recorder>")

record_api_calls(test_api)

# The same tests on the emulated GPU.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/api_calls/emulated_gpu)
lathe_add_test(api_emulated_gpu COMMAND $<TARGET_FILE:test_api> ENVIRONMENT LATHE_TARGET=cuda
               LATHE_CUDA_DRIVER=$<TARGET_FILE:fake_cuda_driver> LATHE_NVRTC=$<TARGET_FILE:fake_nvrtc>
               LATHE_API_CALLS=${CMAKE_BINARY_DIR}/api_calls/emulated_gpu/test_api)
