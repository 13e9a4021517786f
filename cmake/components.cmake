# A component is one static library: its directories, and the components it may include.
add_library(carpool_warnings INTERFACE)
target_compile_options(carpool_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${CARPOOL_WERROR}>:-Werror>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety -Werror=thread-safety>)

# A plain char is signed on every processor, so that a comparison means the same on arm64, where it is unsigned by default.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  add_compile_options(-fsigned-char)
endif()

set(CARPOOL_SANITIZE_NOT "" CACHE STRING "Checks that CARPOOL_SANITIZE implies and a build leaves out, such as vptr")
if(CARPOOL_SANITIZE)
  add_compile_options(-fsanitize=${CARPOOL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(CARPOOL_SANITIZE_NOT)
    add_compile_options(-fno-sanitize=${CARPOOL_SANITIZE_NOT})
  endif()
  add_link_options(-fsanitize=${CARPOOL_SANITIZE})
  # Instrumented code causes false positives of these data-flow warnings; the release build keeps them.
  target_compile_options(carpool_warnings INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-maybe-uninitialized -Wno-stringop-overflow>)
endif()

# Most of a file's compile time goes into the headers that it includes. With CARPOOL_UNITY several files of a component
# are compiled as one. Names in anonymous namespaces are therefore unique within a component.
option(CARPOOL_UNITY "Compile several files of a component as one" OFF)

# `files`: of a unit. In larger units of the request path g++ inlines less, which costs 4 % of its instructions.
function(carpool_unity target files)
  if(CARPOOL_SANITIZE)
    set(files 30)
  endif()
  if(CARPOOL_UNITY)
    # g++ treats each file of a unit as a header, and warns about types in it that depend on an anonymous namespace.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
  endif()
endfunction()

# carpool_component(NAME [DIRS dir...] [LINK component...] [PRIVATE library...]); DIRS defaults to NAME. Files that
# CARPOOL_SMALL_FILES lists are compiled for size (cmake/lean.cmake).
function(carpool_component name)
  cmake_parse_arguments(ARG "" "" "DIRS;LINK;PRIVATE" ${ARGN})
  if(NOT ARG_DIRS)
    set(ARG_DIRS ${name})
  endif()
  set(sources)
  foreach(dir ${ARG_DIRS})
    file(GLOB found CONFIGURE_DEPENDS ${dir}/*.cc ${dir}/uv/*.cc)
    list(APPEND sources ${found})
  endforeach()
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(sources)
    set(small ${sources})
    list(REMOVE_ITEM sources ${CARPOOL_SMALL_FILES})
    list(REMOVE_ITEM small ${sources} "")
    add_library(carpool_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(carpool_${name} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:carpool_warnings>)
    if(name IN_LIST CARPOOL_SMALL_COMPONENTS)
      target_compile_options(carpool_${name} PRIVATE ${CARPOOL_SMALL_OPTIONS})
      carpool_precompile(carpool_${name} carpool_metrics_small)
      carpool_unity(carpool_${name} 30)
    else()
      carpool_precompile(carpool_${name} carpool_base)
      carpool_unity(carpool_${name} 12)
    endif()
    if(small)
      carpool_small_part(carpool_${name} "${small}" ${ARG_LINK} ${ARG_PRIVATE})
    endif()
  else()
    add_library(carpool_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(carpool::${name} ALIAS carpool_${name})
  target_include_directories(carpool_${name} ${scope}
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:include/carpool>)
  target_compile_features(carpool_${name} ${scope} cxx_std_20)
  target_link_libraries(carpool_${name} ${scope} ${ARG_LINK})
endfunction()
