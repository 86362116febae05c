# The kernels of the narrower ISA levels, on the same machine.
foreach(level IN ITEMS baseline avx2)
  lathe_add_test(kernels_${level} COMMAND $<TARGET_FILE:test_kernels> ENVIRONMENT LATHE_CPU_ISA=${level})
endforeach()
