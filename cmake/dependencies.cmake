# Finds every library that carpool uses. deploy/setup installs them on Debian.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED COMPONENTS core)
find_package(spdlog CONFIG REQUIRED)
find_package(fmt CONFIG REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
pkg_check_modules(uv REQUIRED IMPORTED_TARGET libuv)
pkg_check_modules(cares REQUIRED IMPORTED_TARGET libcares)
pkg_check_modules(nghttp2 REQUIRED IMPORTED_TARGET libnghttp2)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(idn2 REQUIRED IMPORTED_TARGET libidn2)
if(CARPOOL_STATIC)  # libuv's archive has a different name; idn2's does not name the library it needs
  find_library(UV_ARCHIVE uv_a REQUIRED)
  set_target_properties(PkgConfig::uv PROPERTIES INTERFACE_LINK_LIBRARIES "${UV_ARCHIVE};Threads::Threads;dl;rt")
  find_library(UNISTRING unistring REQUIRED)
  target_link_libraries(PkgConfig::idn2 INTERFACE ${UNISTRING})
endif()

# llhttp: an installed library from version 9, otherwise Debian 12's C sources (8.1.0), which are safe in strict mode only:
# the default build accepts a space before the colon, chunk data without CRLF and a lone CR as the end of a head.
pkg_check_modules(llhttp_pkg IMPORTED_TARGET libllhttp>=9)
if(llhttp_pkg_FOUND)
  add_library(llhttp ALIAS PkgConfig::llhttp_pkg)
else()
  find_path(LLHTTP_INCLUDE llhttp.h PATHS /usr/share/include PATH_SUFFIXES llhttp REQUIRED)
  find_path(LLHTTP_SOURCE llhttp.c PATHS /usr/share PATH_SUFFIXES llhttp llhttp/src REQUIRED)
  file(GLOB llhttp_sources ${LLHTTP_SOURCE}/*.c)
  add_library(llhttp STATIC ${llhttp_sources})
  target_compile_definitions(llhttp PRIVATE LLHTTP_STRICT_MODE=1)
  target_compile_options(llhttp PRIVATE -O3)
  target_include_directories(llhttp SYSTEM PUBLIC ${LLHTTP_INCLUDE})
endif()

# toml++, spdlog and fmt are each used by one file. Compiling them into it avoids the pages of a mostly unused library and
# its relocations at start. Measured: 0.7 MiB less resident memory when idle.
add_library(tomlplusplus INTERFACE)
target_include_directories(tomlplusplus SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE})
target_compile_definitions(tomlplusplus INTERFACE TOML_HEADER_ONLY=1)
add_library(spdlog_inline INTERFACE)
target_include_directories(spdlog_inline SYSTEM INTERFACE
  $<TARGET_PROPERTY:spdlog::spdlog_header_only,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(spdlog_inline INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(spdlog_inline INTERFACE fmt::fmt-header-only Threads::Threads)
