// pthread_create, which fails where the kernel starts no thread or maps no stack.
#include <pthread.h>

#include <cerrno>

#include "control.h"

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*entry)(void*),
                              void* argument) noexcept {
  SYSTEM_FAULTS_NEXT(pthread_create);
  if (system_faults::fails(system_faults::Function::thread)) return errno;
  return next(thread, attributes, entry, argument);
}
