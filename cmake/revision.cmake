# Generates revision() of the program. Each build compares the file with git; it is an object of its own, so that a commit recompiles one file.
set(revision_file ${CMAKE_BINARY_DIR}/embedded/proxy_revision.cc)
add_custom_target(carpool_revision_file BYPRODUCTS ${revision_file} COMMENT ""
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION} -DOUTPUT=${revision_file}
    -P ${CMAKE_SOURCE_DIR}/cmake/write_revision.cmake)
add_library(carpool_revision OBJECT ${revision_file})
add_dependencies(carpool_revision carpool_revision_file)
target_include_directories(carpool_revision PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_features(carpool_revision PRIVATE cxx_std_20)
