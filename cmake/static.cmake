# CARPOOL_STATIC links the libraries that Debian also ships as archives statically, with their used parts only: the image is
# 3 MB smaller. The unwind tables of C libraries are left out (unwind.ld).
option(CARPOOL_STATIC "Link archives of libraries where there are any" OFF)
if(CARPOOL_STATIC)
  set(OPENSSL_USE_STATIC_LIBS TRUE)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
  add_compile_options(-ffunction-sections -fdata-sections)  # so that the linker can drop unused sections
  add_link_options(-Wl,--gc-sections -Wl,-T,${CMAKE_CURRENT_LIST_DIR}/unwind.ld)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)  # not yet supported by the arm64 linker
    add_link_options(-Wl,-z,pack-relative-relocs)
  endif()
endif()
