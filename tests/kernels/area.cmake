# The kernels of the narrower ISA levels, on the same machine.
foreach(level IN ITEMS baseline avx2)
  add_test(NAME kernels_${level} COMMAND test_kernels)
  set_tests_properties(kernels_${level} PROPERTIES TIMEOUT ${LATHE_TEST_SECONDS} ENVIRONMENT LATHE_CPU_ISA=${level})
endforeach()
