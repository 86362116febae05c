# Later versions of the libraries, for tests/compat: what this source tree would be, but for the number of its version and,
# from 0.3 on, the formats of records, so that plans of before are no longer read directly. Built with version_runner alone.
set(formats_0_2 1,1)
set(formats_0_3 2,2)
foreach(release 0_2 0_3)
  string(REPLACE "_" "." folder ${release})
  lathe_add_version(lathe_version_${release}_objects ${folder}.0.0 11 LATHE_RECORD_FORMATS={${formats_${release}}})
  lathe_add_shared(lathe_${release} ${LATHE_OBJECTS} $<TARGET_OBJECTS:lathe_version_${release}_objects> ${SIMD_OBJECTS})
  lathe_add_lean(lathe_lean_${release} lathe_version_${release}_objects lathe_runtime_api_objects)
  lathe_add_dispatch(lathe_dispatch_${release} lathe_version_${release}_objects lathe_dispatch_api_objects)
  foreach(library lathe lathe_lean lathe_dispatch)
    set_target_properties(${library}_${release} PROPERTIES OUTPUT_NAME ${library} EXCLUDE_FROM_ALL ON
                          LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/versions/${folder})
  endforeach()
endforeach()
# Of generation 10, the one that leaves plans of before to their own runtimes.
lathe_add_version(lathe_version_10_0_3_objects 0.3.0.0 10 LATHE_RECORD_FORMATS={${formats_0_3}})
lathe_add_lean(lathe_lean_10_0_3 lathe_version_10_0_3_objects lathe_runtime_api_10_objects)
lathe_add_dispatch(lathe_dispatch_10_0_3 lathe_version_10_0_3_objects lathe_dispatch_api_10_objects)
foreach(library lathe_lean_10 lathe_dispatch_10)
  set_target_properties(${library}_0_3 PROPERTIES OUTPUT_NAME ${library} EXCLUDE_FROM_ALL ON
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/versions/0.3)
endforeach()
