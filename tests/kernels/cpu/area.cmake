# The kernels of the narrower ISA levels, on the same machine.
foreach(level IN ITEMS baseline avx2)
  lathe_add_test(kernels_cpu_${level} COMMAND $<TARGET_FILE:test_kernels_cpu> ENVIRONMENT LATHE_CPU_ISA=${level})
endforeach()
