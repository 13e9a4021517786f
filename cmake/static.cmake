# With CARPOOL_STATIC the libraries that Debian also ships as archives become part of the program, and with them only
# what is used of them: the image is 3 MB smaller. What C libraries bring for unwinding is left out (unwind.ld).
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
