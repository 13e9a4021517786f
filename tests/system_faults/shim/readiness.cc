// epoll, eventfd and inotify.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#include <cerrno>

#include "descriptors.h"

using system_faults::fails;
using system_faults::Function;
using system_faults::Made;

extern "C" {

// Only an addition needs memory and a place: nothing else can fail in a correct program. The kernel looks first whether
// the descriptor is in the set.
int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  SYSTEM_FAULTS_NEXT(epoll_ctl);
  const int status = next(epoll, operation, fd, event);
  if (status != 0 || operation == EPOLL_CTL_DEL) return status;
  if (operation == EPOLL_CTL_ADD && fails(Function::epoll_add)) {
    const int error = errno;
    next(epoll, EPOLL_CTL_DEL, fd, nullptr);
    errno = error;
    return -1;
  }
  system_faults::note_registered(fd, epoll, *event);
  return 0;
}

int epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
  SYSTEM_FAULTS_NEXT(epoll_wait);
  return fails(Function::epoll_wait) ? -1 : next(epoll, events, most, timeout);
}

int epoll_pwait(int epoll, epoll_event* events, int most, int timeout, const sigset_t* mask) {
  SYSTEM_FAULTS_NEXT(epoll_pwait);
  return fails(Function::epoll_wait) ? -1 : next(epoll, events, most, timeout, mask);
}

int epoll_create1(int flags) noexcept {
  SYSTEM_FAULTS_NEXT(epoll_create1);
  if (fails(Function::epoll_create)) return -1;
  const int fd = next(flags);
  system_faults::note_made(fd, Made::otherwise);
  return fd;
}

int eventfd(unsigned value, int flags) noexcept {
  SYSTEM_FAULTS_NEXT(eventfd);
  if (fails(Function::eventfd)) return -1;
  const int fd = next(value, flags);
  system_faults::note_made(fd, Made::otherwise);
  return fd;
}

int inotify_init1(int flags) noexcept {
  SYSTEM_FAULTS_NEXT(inotify_init1);
  if (fails(Function::inotify)) return -1;
  const int fd = next(flags);
  system_faults::note_made(fd, Made::otherwise);
  return fd;
}

int inotify_add_watch(int fd, const char* path, std::uint32_t mask) noexcept {
  SYSTEM_FAULTS_NEXT(inotify_add_watch);
  return fails(Function::inotify) ? -1 : next(fd, path, mask);
}

}  // extern "C"
