target_sources(test_cuda PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/cuda/emulated_module.cpp)
target_link_libraries(test_cuda PRIVATE lathe_emulated_compiler ${CMAKE_DL_LIBS})
add_dependencies(test_cuda lathe_emulator fake_nvrtc)
