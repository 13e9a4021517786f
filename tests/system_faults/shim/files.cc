// open and its variants, fsync, random bytes.
#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "descriptors.h"

using system_faults::fails;
using system_faults::Function;
using system_faults::Made;

namespace {

int noted(int fd) {
  system_faults::note_made(fd, Made::file);
  return fd;
}

// The mode, which is there only if a file may be created.
mode_t mode_of(int flags, va_list more) {
  return (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  SYSTEM_FAULTS_NEXT(open);
  if (fails(Function::open)) return -1;
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return noted(next(path, flags, mode));
}

int open64(const char* path, int flags, ...) {
  SYSTEM_FAULTS_NEXT(open64);
  if (fails(Function::open)) return -1;
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return noted(next(path, flags, mode));
}

int openat(int folder, const char* path, int flags, ...) {
  SYSTEM_FAULTS_NEXT(openat);
  if (fails(Function::open)) return -1;
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return noted(next(folder, path, flags, mode));
}

FILE* fopen(const char* path, const char* mode) {
  SYSTEM_FAULTS_NEXT(fopen);
  return fails(Function::open) ? nullptr : next(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  SYSTEM_FAULTS_NEXT(fopen64);
  return fails(Function::open) ? nullptr : next(path, mode);
}

DIR* opendir(const char* path) {
  SYSTEM_FAULTS_NEXT(opendir);
  return fails(Function::open) ? nullptr : next(path);
}

int fsync(int fd) {
  SYSTEM_FAULTS_NEXT(fsync);
  return fails(Function::sync) ? -1 : next(fd);
}

int fdatasync(int fd) {
  SYSTEM_FAULTS_NEXT(fdatasync);
  return fails(Function::sync) ? -1 : next(fd);
}

ssize_t getrandom(void* into, size_t size, unsigned flags) {
  SYSTEM_FAULTS_NEXT(getrandom);
  return fails(Function::random) ? -1 : next(into, size, flags);
}

int getentropy(void* into, size_t size) {
  SYSTEM_FAULTS_NEXT(getentropy);
  return fails(Function::random) ? -1 : next(into, size);
}

}  // extern "C"
