# The next two versions of the libraries, for tests/compat: what this source tree would be, but for the number of its version and,
# of the later one, the formats of records, so that plans of before are no longer read directly. Built with version_runner alone.
math(EXPR minor_next "${PROJECT_VERSION_MINOR} + 1")
math(EXPR minor_later "${PROJECT_VERSION_MINOR} + 2")
set(formats_next 1,1)
set(formats_later 2,2)
foreach(release next later)
  lathe_add_version(lathe_version_${release}_objects 0.${minor_${release}}.0.0 11 LATHE_RECORD_FORMATS={${formats_${release}}})
  lathe_add_shared(lathe_${release} ${LATHE_OBJECTS} $<TARGET_OBJECTS:lathe_version_${release}_objects> ${PACKABLE_OBJECTS})
  lathe_add_lean(lathe_lean_${release} lathe_version_${release}_objects lathe_runtime_api_objects)
  lathe_add_dispatch(lathe_dispatch_${release} lathe_version_${release}_objects lathe_dispatch_api_objects)
  foreach(library lathe lathe_lean lathe_dispatch)
    set_target_properties(${library}_${release} PROPERTIES OUTPUT_NAME ${library} EXCLUDE_FROM_ALL ON
                          LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/versions/${release})
  endforeach()
endforeach()
# Of generation 10, the one that leaves plans of before to their own runtimes.
lathe_add_version(lathe_version_10_later_objects 0.${minor_later}.0.0 10 LATHE_RECORD_FORMATS={${formats_later}})
lathe_add_lean(lathe_lean_10_later lathe_version_10_later_objects lathe_runtime_api_10_objects)
lathe_add_dispatch(lathe_dispatch_10_later lathe_version_10_later_objects lathe_dispatch_api_10_objects)
foreach(library lathe_lean_10 lathe_dispatch_10)
  set_target_properties(${library}_later PROPERTIES OUTPUT_NAME ${library} EXCLUDE_FROM_ALL ON
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/versions/later)
endforeach()
