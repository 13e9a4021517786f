# Reading the standard library is half of what a small file costs, and a build with sanitizers compiles every one of them.
# Not for what is shipped: without this, each file has to include what it uses.
set(CARPOOL_PRECOMPILE OFF CACHE STRING "Precompile the standard headers, once for all: OFF, TESTS (not the rooms) or ON")

# Targets of one LEADER share its headers; their compile options must be its own. The first one leads.
function(carpool_precompile target leader)
  if(NOT CARPOOL_PRECOMPILE OR (CARPOOL_PRECOMPILE STREQUAL "TESTS" AND NOT target MATCHES "_tests$"))
    return()
  endif()
  if(target STREQUAL leader)
    # The same bytes from the same headers, or nothing that includes them is ever found in a cache.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/standard.h ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${leader})
  endif()
endfunction()
