# Most resident memory of an idle sidecar is code touched at start. In a release, components and files outside the request
# path are therefore compiled for size (about half of the code), and libstdc++ is linked statically, which keeps only the
# used parts and avoids the library's relocations. Measured: 1.5 MiB less resident memory.

# The linker keeps one copy of an inline function of several files, which may be one that was compiled for size and is then
# used on the request path, such as std::string's. g++ would copy memory in it byte by byte (rep movsb).
set(CARPOOL_FOR_SIZE -Os)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  list(APPEND CARPOOL_FOR_SIZE -mstringop-strategy=libcall)
endif()

# Options of what is compiled for size. Sanitizers double a file's optimising, which only the request path and its fuzz
# targets are worth.
set(CARPOOL_SMALL_OPTIONS "$<$<CONFIG:Release>:${CARPOOL_FOR_SIZE}>")
if(CARPOOL_SANITIZE)
  set(CARPOOL_SMALL_OPTIONS -O0)
endif()

# Compiles whole components for size. Must be called before their declaration.
function(carpool_small)
  set(CARPOOL_SMALL_COMPONENTS ${ARGN} PARENT_SCOPE)
endfunction()

# Compiles single files for size, in components that also contain hot ones. Arguments are patterns. Must be called before
# the declaration of those components.
function(carpool_small_files)
  file(GLOB files CONFIGURE_DEPENDS ${ARGN})
  set(CARPOOL_SMALL_FILES ${files} PARENT_SCOPE)
endfunction()

# Adds `sources` to a component, compiled for size; it links the libraries in ARGN.
function(carpool_small_part component sources)
  add_library(${component}_small OBJECT ${sources})
  target_link_libraries(${component}_small PRIVATE ${ARGN} carpool_warnings)
  target_include_directories(${component}_small PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/embedded)
  target_compile_options(${component}_small PRIVATE ${CARPOOL_SMALL_OPTIONS})
  carpool_precompile(${component}_small carpool_metrics_small)
  carpool_unity(${component}_small 30)
  target_sources(${component} PRIVATE $<TARGET_OBJECTS:${component}_small>)
endfunction()

# `first`: a component in which everything is hot. The linker keeps the first copy of an inline function.
# Linking libstdc++ statically is safe because no loaded library is written in C++: no exception crosses to another copy.
function(carpool_lean program first)
  target_sources(${program} PRIVATE $<TARGET_OBJECTS:${first}>)
  target_link_options(${program} PRIVATE
    $<$<CONFIG:Release>:-static-libstdc++;-static-libgcc;-Wl,--gc-sections;-Wl,--as-needed>)
endfunction()
