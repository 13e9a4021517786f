// Annotations for clang's thread-safety analysis (clang preset), which checks at compile time which mutex guards what.
// g++ ignores them.
//   GUARDED_BY(mutex)  on a member: it is read and written only while the mutex is held
//   REQUIRES(mutex)    on a function: the caller holds the mutex
//   EXCLUDES(mutex)    on a function: the caller does not hold the mutex; the function locks it, or calls out
#pragma once

#if defined(__clang__)
#define CARPOOL_TSA(...) __attribute__((__VA_ARGS__))
#else
#define CARPOOL_TSA(...)
#endif

#define GUARDED_BY(mutex) CARPOOL_TSA(guarded_by(mutex))
#define REQUIRES(mutex) CARPOOL_TSA(requires_capability(mutex))
#define EXCLUDES(mutex) CARPOOL_TSA(locks_excluded(mutex))
