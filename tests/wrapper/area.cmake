# The wrapper's library beside a runtime's, as programs have them; once for each generation of the interface, on the CPU and on
# the emulated GPU.
target_link_libraries(test_wrapper PRIVATE lathe_wrapper ${CMAKE_DL_LIBS})
# What only engines can show that no library has.
target_sources(test_wrapper PRIVATE ${CMAKE_SOURCE_DIR}/src/wrapper/kernel_store.cpp)

set(wrapper_tests ${sources})
list(FILTER wrapper_tests EXCLUDE REGEX "context_maker_test")
add_executable(test_wrapper_10 ${wrapper_tests})
target_link_libraries(test_wrapper_10 PRIVATE lathe_10 lathe_wrapper_10 GTest::gtest GTest::gtest_main ${CMAKE_DL_LIBS})
target_include_directories(test_wrapper_10 PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(test_wrapper_10 PRIVATE LATHE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
target_compile_options(test_wrapper_10 PRIVATE -Wno-deprecated-declarations)
target_precompile_headers(test_wrapper_10 REUSE_FROM precompiled_for_tests)
set_target_properties(test_wrapper_10 PROPERTIES UNITY_BUILD ${LATHE_UNITY} UNITY_BUILD_MODE GROUP)  # in test_wrapper's groups
foreach(suffix "" _10)
  add_dependencies(test_wrapper${suffix} fake_cuda_driver fake_nvrtc lathe_emulator)
  lathe_add_test(wrapper${suffix}_emulated_gpu COMMAND $<TARGET_FILE:test_wrapper${suffix}> ENVIRONMENT LATHE_TARGET=cuda
                 LATHE_CUDA_DRIVER=$<TARGET_FILE:fake_cuda_driver> LATHE_NVRTC=$<TARGET_FILE:fake_nvrtc>)
endforeach()
lathe_add_test(wrapper_10 COMMAND $<TARGET_FILE:test_wrapper_10>)
