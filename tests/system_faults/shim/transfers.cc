// recv, send and their variants: errors, and transfers of one byte.
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "descriptors.h"

namespace system_faults {
namespace {

enum class Verdict { pass, fail, one_byte };

Verdict judge(int fd, Function function, bool empty) {
  if (empty || !fails(function)) return Verdict::pass;
  if (errno == 0 || errno == EAGAIN) owe_event(fd);
  return errno == 0 ? Verdict::one_byte : Verdict::fail;
}

// The first byte of these pieces; a piece may be empty.
iovec first_byte(const iovec* pieces, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (pieces[i].iov_len > 0) return {pieces[i].iov_base, 1};
  }
  return {nullptr, 0};
}

ssize_t over_one_byte(int fd, const msghdr* message, int flags, ssize_t (*next)(int, const msghdr*, int)) {
  iovec byte = first_byte(message->msg_iov, message->msg_iovlen);
  msghdr shorter = *message;
  shorter.msg_iov = &byte;
  shorter.msg_iovlen = 1;
  return next(fd, &shorter, flags);
}

}  // namespace
}  // namespace system_faults

using system_faults::judge;
using system_faults::receiving;
using system_faults::sending;
using system_faults::Verdict;

extern "C" {

ssize_t recv(int fd, void* into, size_t size, int flags) {
  SYSTEM_FAULTS_NEXT(recv);
  const Verdict verdict = judge(fd, receiving(fd), size == 0);
  if (verdict == Verdict::fail) return -1;
  return next(fd, into, verdict == Verdict::one_byte ? 1 : size, flags);
}

ssize_t recvfrom(int fd, void* into, size_t size, int flags, sockaddr* from, socklen_t* length) {
  SYSTEM_FAULTS_NEXT(recvfrom);
  const Verdict verdict = judge(fd, receiving(fd), size == 0);
  if (verdict == Verdict::fail) return -1;
  return next(fd, into, verdict == Verdict::one_byte ? 1 : size, flags, from, length);
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  SYSTEM_FAULTS_NEXT(recvmsg);
  // Descriptors come with the first byte: a short read is left to recv().
  if (judge(fd, receiving(fd), false) == Verdict::fail) return -1;
  return next(fd, message, flags);
}

ssize_t read(int fd, void* into, size_t size) {
  SYSTEM_FAULTS_NEXT(read);
  const Verdict verdict = judge(fd, receiving(fd), size == 0);
  if (verdict == Verdict::fail) return -1;
  return next(fd, into, verdict == Verdict::one_byte ? 1 : size);
}

ssize_t send(int fd, const void* from, size_t size, int flags) {
  SYSTEM_FAULTS_NEXT(send);
  const Verdict verdict = judge(fd, sending(fd), size == 0);
  if (verdict == Verdict::fail) return -1;
  return next(fd, from, verdict == Verdict::one_byte ? 1 : size, flags);
}

ssize_t sendto(int fd, const void* from, size_t size, int flags, const sockaddr* to, socklen_t length) {
  SYSTEM_FAULTS_NEXT(sendto);
  const Verdict verdict = judge(fd, sending(fd), size == 0);
  if (verdict == Verdict::fail) return -1;
  return next(fd, from, verdict == Verdict::one_byte ? 1 : size, flags, to, length);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  SYSTEM_FAULTS_NEXT(sendmsg);
  const Verdict verdict = judge(fd, sending(fd), false);
  if (verdict == Verdict::fail) return -1;
  if (verdict == Verdict::one_byte) return system_faults::over_one_byte(fd, message, flags, next);
  return next(fd, message, flags);
}

ssize_t write(int fd, const void* from, size_t size) {
  SYSTEM_FAULTS_NEXT(write);
  const Verdict verdict = judge(fd, sending(fd), size == 0);
  if (verdict == Verdict::fail) return -1;
  return next(fd, from, verdict == Verdict::one_byte ? 1 : size);
}

ssize_t writev(int fd, const iovec* pieces, int count) {
  SYSTEM_FAULTS_NEXT(writev);
  const Verdict verdict = judge(fd, sending(fd), count == 0);
  if (verdict == Verdict::fail) return -1;
  const iovec byte = system_faults::first_byte(pieces, static_cast<std::size_t>(count));
  return verdict == Verdict::one_byte ? next(fd, &byte, 1) : next(fd, pieces, count);
}

}  // extern "C"
