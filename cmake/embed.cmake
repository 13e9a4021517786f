# embed(HEADER FILE NAME): FILE's bytes as `inline constexpr std::string_view NAME` in a generated HEADER.
function(embed header file namespace name)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  set(quote "embedded")
  string(CONCAT out
    "// Generated from ${file} by cmake/embed.cmake.\n#pragma once\n#include <string_view>\nnamespace ${namespace} {\n"
    "inline constexpr std::string_view ${name} = R\"${quote}(" "${text}" ")${quote}\";\n}\n")
  if(EXISTS ${header})
    file(READ ${header} before)
  endif()
  if(NOT "${before}" STREQUAL "${out}")
    file(WRITE ${header} "${out}")
  endif()
endfunction()
