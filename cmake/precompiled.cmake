# Parsing the standard library is half of a small file's compile time, and sanitizer builds compile every file. Off for
# `dev` and `clang`, which thereby check that each file includes what it uses.
set(CARPOOL_PRECOMPILE OFF CACHE STRING "Precompile the standard headers, once for all: OFF, TESTS (not the components) or ON")

# Targets with the same LEADER share its precompiled headers and must have its compile options. The first target leads.
function(carpool_precompile target leader)
  if(NOT CARPOOL_PRECOMPILE OR (CARPOOL_PRECOMPILE STREQUAL "TESTS" AND NOT target MATCHES "_tests$"))
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
