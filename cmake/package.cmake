# Debian packages: `cpack -G DEB` in a build folder builds carpool (the program) and libcarpool-dev (the libraries).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME carpool)
set(CPACK_PACKAGE_VENDOR "the carpool authors")
set(CPACK_PACKAGE_CONTACT "the carpool authors <carpool@carpool.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "connection-pooling forward proxy")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)  # /etc is outside the prefix
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENT_PROGRAM_GROUP program)
set(CPACK_COMPONENT_DEVELOPMENT_GROUP development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME carpool)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "ca-certificates, systemd-standalone-sysusers | systemd | systemd-sysusers")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "Applications of a machine or a pod send their HTTP requests to carpool; it
carries them to their origins over connections that it keeps, shares and
counts. One exact cap for an origin over all workers, waiters served in
order, and a named cause for every connection opened or closed.")
foreach(script postinst prerm postrm)
  list(APPEND scripts ${CMAKE_SOURCE_DIR}/deploy/package/${script})
endforeach()
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${scripts} ${CMAKE_SOURCE_DIR}/deploy/package/conffiles)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libcarpool-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libuv1-dev, libidn2-dev, prometheus-cpp-dev, pkg-config")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "The connection pool and the adaptive execution of carpool as static
libraries with headers, for find_package(carpool COMPONENTS pool exec).")
include(CPack)
