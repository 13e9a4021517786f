# With CARPOOL_STATIC the libraries that Debian also ships as archives become part of the program, and with them only
# what is used of them: the image is 3 MB smaller. prometheus-cpp has no archive and stays shared, and so does libstdc++,
# which it needs. What C libraries bring for unwinding is left out (unwind.ld). Rooms and files that no request passes
# through are compiled for size: about half of the code.
option(CARPOOL_STATIC "Link archives of libraries where there are any" OFF)
if(CARPOOL_STATIC)
  set(OPENSSL_USE_STATIC_LIBS TRUE)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
  add_compile_options(-ffunction-sections -fdata-sections)  # what the linker can leave out
  add_link_options(-Wl,--gc-sections -Wl,-T,${CMAKE_CURRENT_LIST_DIR}/unwind.ld)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)  # the linker for arm64 has no such relocations yet
    add_link_options(-Wl,-z,pack-relative-relocs)
  endif()
endif()

# After the rooms are declared.
function(carpool_small)
  if(CARPOOL_STATIC)
    foreach(room ${ARGN})
      target_compile_options(carpool_${room} PRIVATE -Os)
    endforeach()
  endif()
endfunction()

# Files of a room that has hot ones too; patterns.
function(carpool_small_files)
  if(CARPOOL_STATIC)
    file(GLOB files CONFIGURE_DEPENDS ${ARGN})
    set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS -Os)
  endif()
endfunction()
