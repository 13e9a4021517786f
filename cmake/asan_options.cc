// Defaults of a program that is built with AddressSanitizer; ASAN_OPTIONS overrides them. The default quarantine of 256
// MiB hides whether memory is bounded: freed memory stays resident.
extern "C" const char* __asan_default_options();  // NOLINT(bugprone-reserved-identifier): the name is the sanitizer's
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=4:thread_local_quarantine_size_kb=64";
}
