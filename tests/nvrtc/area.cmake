# The compiler of device code needs no GPU: `make setup` installs it into the Python environment.
file(GLOB nvrtc_of_environment ${CMAKE_SOURCE_DIR}/.venv/lib/python*/site-packages/nvidia/cu*/lib/libnvrtc.so.*)
set(test_environment LATHE_CACHE_DIR=${CMAKE_BINARY_DIR}/nvrtc_cache)
if(nvrtc_of_environment)
  list(GET nvrtc_of_environment 0 nvrtc_of_environment)
  list(APPEND test_environment LATHE_NVRTC=${nvrtc_of_environment})
endif()
