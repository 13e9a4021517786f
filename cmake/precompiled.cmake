# Parsing the standard library takes two seconds of each file or unit. Off for `dev` and `clang`, which thereby check that
# each file includes what it uses. g++ makes the same instructions of a file with precompiled headers and without.
option(CARPOOL_PRECOMPILE "Precompile the standard headers, once for all" OFF)

# Targets with the same LEADER share its precompiled headers and must have its compile options. The first target leads.
function(carpool_precompile target leader)
  if(NOT CARPOOL_PRECOMPILE)
    return()
  endif()
  if(target STREQUAL leader)
    # The output must be reproducible, otherwise files that include it never hit the compiler cache.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/standard.h ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${leader})
  endif()
endfunction()
