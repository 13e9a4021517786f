# Most of what a sidecar holds in memory at rest is code that its start has touched, so a released program carries little
# of it: rooms and files that no request passes through are compiled for size (about half of the code), and of libstdc++
# it takes what it uses, without a library's table of relocations. Measured: a mebibyte and a half of resident memory.

# After the rooms are declared.
function(carpool_small)
  foreach(room ${ARGN})
    target_compile_options(carpool_${room} PRIVATE $<$<CONFIG:Release>:-Os>)
  endforeach()
endfunction()

# Files of a room that has hot ones too; patterns.
function(carpool_small_files)
  file(GLOB files CONFIGURE_DEPENDS ${ARGN})
  set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-Os>)
endfunction()

# `first`: a room in which everything is hot. Of an inline function that several files have, as of std::string's, the
# linker keeps the first it meets, and that must not be one compiled for size.
# No library that the program loads is written in C++: nobody throws across the border to the system's libstdc++.
function(carpool_lean program first)
  target_sources(${program} PRIVATE $<TARGET_OBJECTS:${first}>)
  target_link_options(${program} PRIVATE
    $<$<CONFIG:Release>:-static-libstdc++;-static-libgcc;-Wl,--gc-sections;-Wl,--as-needed>)
endfunction()
