# How tests are declared: limits, and the parts of long suites.
find_program(LATHE_PYTHON NAMES python3 REQUIRED)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/test_results)  # what each test said: tools/requirements.py
# What one test may use up, in seconds of processor time, so that none fails because the machine is busy; ten times as
# long on the clock ends those that wait for ever. An idle machine should take at most a minute for each test.
set(LATHE_TEST_SECONDS 300)
if(LATHE_SANITIZE)
  set(LATHE_TEST_SECONDS 3600)
endif()
# Suites that take longer than that minute, and in how many parts they are run: nvrtc becomes nvrtc_1_of_4 to nvrtc_4_of_4.
set(LATHE_TEST_PARTS kernels_cuda 9 nvrtc 6 api_emulated_gpu 4 conformance_cli_test 2 emulated_gpu_cli_test 3 networks_cli_test 3)

# Long ones that ctest would start last, with little beside them, where it has timed none before.
set(LATHE_FIRST_TESTS interfaces_test python_wheel_test)

# lathe_add_test(NAME COMMAND program argument... [ENVIRONMENT variable=value...]): the parts of one suite.
function(lathe_add_test name)
  cmake_parse_arguments(ARG "" "" "COMMAND;ENVIRONMENT" ${ARGN})
  set(parts 1)
  list(FIND LATHE_TEST_PARTS ${name} found)
  if(NOT found EQUAL -1)
    math(EXPR found "${found} + 1")
    list(GET LATHE_TEST_PARTS ${found} parts)
  endif()
  math(EXPR wall_seconds "10 * ${LATHE_TEST_SECONDS}")
  math(EXPR last "${parts} - 1")
  foreach(part RANGE ${last})
    set(test ${name})
    if(parts GREATER 1)
      math(EXPR number "${part} + 1")
      set(test ${name}_${number}_of_${parts})
    endif()
    add_test(NAME ${test} COMMAND ${LATHE_PYTHON} ${CMAKE_SOURCE_DIR}/tests/limited.py --seconds ${LATHE_TEST_SECONDS}
             --part ${part}/${parts} --results ${CMAKE_BINARY_DIR}/test_results/${test}.xml ${ARG_COMMAND})
    if(name IN_LIST LATHE_FIRST_TESTS)
      set_tests_properties(${test} PROPERTIES COST 100)
    endif()
    # Builds are for the CPU unless a test says otherwise, also on a machine with a GPU.
    set_tests_properties(${test} PROPERTIES TIMEOUT ${wall_seconds} ENVIRONMENT "LATHE_TARGET=cpu;${ARG_ENVIRONMENT}")
  endforeach()
endfunction()
