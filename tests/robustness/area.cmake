# What the sweep makes fail: operator new is replaced; the C functions that the library calls are wrapped.
target_sources(test_robustness PRIVATE robustness/replaced_allocation.cpp)
target_link_options(test_robustness PRIVATE -Wl,--wrap=aligned_alloc,--wrap=free,--wrap=mmap,--wrap=munmap
                    -Wl,--wrap=__sched_cpualloc,--wrap=__sched_cpufree)
add_dependencies(test_robustness fake_nvrtc)
target_compile_definitions(test_robustness PRIVATE FAKE_NVRTC="$<TARGET_FILE:fake_nvrtc>")
target_link_libraries(test_robustness PRIVATE lathe_wrapper ${CMAKE_DL_LIBS})
# Whose allocations fail, too, though they are opened while the test runs.
add_dependencies(test_robustness lathe_lean lathe_dispatch lathe_dispatch_later)
target_compile_definitions(test_robustness PRIVATE LIBRARY_FOLDER="${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
