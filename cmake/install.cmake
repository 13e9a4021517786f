# Installation: component `program` contains the program and its files, `development` the pool and execution libraries.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(CARPOOL_UNIT_DIR ${CMAKE_INSTALL_PREFIX}/lib/systemd/system CACHE PATH "Where systemd's units go")
set(CARPOOL_SYSUSERS_DIR ${CMAKE_INSTALL_PREFIX}/lib/sysusers.d CACHE PATH "Where descriptions of system users go")

# ---- the program ----
install(TARGETS carpool RUNTIME COMPONENT program)
install(FILES config.toml DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/carpool COMPONENT program)
configure_file(deploy/package/carpool.service.in carpool.service @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/carpool.service DESTINATION ${CARPOOL_UNIT_DIR} COMPONENT program)
install(FILES deploy/package/carpool.sysusers DESTINATION ${CARPOOL_SYSUSERS_DIR} RENAME carpool.conf COMPONENT program)
install(FILES deploy/package/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
foreach(section 1 5)
  file(GLOB pages CONFIGURE_DEPENDS docs/man/*.${section})
  foreach(page ${pages})
    carpool_compressed(${page} ${CMAKE_INSTALL_MANDIR}/man${section} program)
  endforeach()
endforeach()
carpool_compressed(${CMAKE_SOURCE_DIR}/deploy/package/changelog ${CMAKE_INSTALL_DOCDIR} program changelog.Debian.gz)
carpool_compressed(${CMAKE_SOURCE_DIR}/CHANGELOG.md ${CMAKE_INSTALL_DOCDIR} program changelog.gz)
# The documentation, and files for an operator to copy: dashboard, rules, drop-ins of the unit.
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program FILES_MATCHING PATTERN "*.md" PATTERN man EXCLUDE PATTERN images EXCLUDE)
install(DIRECTORY deploy/grafana deploy/prometheus deploy/package/carpool.service.d DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT program
  PATTERN rules_test.yml EXCLUDE)
install(FILES deploy/completions/carpool.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME carpool COMPONENT program)
install(FILES deploy/completions/_carpool DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT program)
install(FILES deploy/completions/carpool.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)

# ---- the libraries ----
set(libraries carpool_base carpool_metrics carpool_exec carpool_pool)
foreach(library ${libraries})
  string(REPLACE carpool_ "" component ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${component})
  install(DIRECTORY ${component} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/carpool COMPONENT development FILES_MATCHING PATTERN "*.h")
endforeach()
install(TARGETS ${libraries} EXPORT carpool ARCHIVE COMPONENT development)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/carpool)
install(EXPORT carpool NAMESPACE carpool:: FILE carpoolTargets.cmake DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(cmake/carpoolConfig.cmake.in carpoolConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(carpoolConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/carpoolConfig.cmake ${CMAKE_BINARY_DIR}/carpoolConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT development)
install(FILES deploy/package/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libcarpool-dev COMPONENT development)
carpool_compressed(${CMAKE_SOURCE_DIR}/deploy/package/changelog ${CMAKE_INSTALL_DATADIR}/doc/libcarpool-dev development changelog.Debian.gz)
