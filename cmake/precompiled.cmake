# Reading the standard library is half of what a small file costs, and a build with sanitizers compiles every one of them.
# Not for what is shipped: without this, each file has to include what it uses.
option(CARPOOL_PRECOMPILE "Precompile the standard headers, once for all rooms" OFF)

# Targets of one LEADER share its headers; their compile options must be its own. The first one leads.
function(carpool_precompile target leader)
  if(NOT CARPOOL_PRECOMPILE)
    return()
  endif()
  if(target STREQUAL leader)
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/standard.h ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${leader})
  endif()
endfunction()
