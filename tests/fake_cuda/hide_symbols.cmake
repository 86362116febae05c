# Makes a library lack functions, as older versions of it do.
function(lathe_hide_symbols target)
  if(ARGN)
    list(JOIN ARGN ";" hidden)
    set(script ${CMAKE_CURRENT_BINARY_DIR}/${target}.map)
    file(CONFIGURE OUTPUT ${script} CONTENT "{ global: *; local: ${hidden}; };\n")
    target_link_options(${target} PRIVATE -Wl,--version-script=${script})
  endif()
endfunction()
