#include "proxy/http/h2/types.h"

#include <array>

namespace carpool::proxy::http {

std::string_view h2_error_name(H2Error error) {
  constexpr std::array<std::string_view, 14> kNames = {"NO_ERROR",
                                                       "PROTOCOL_ERROR",
                                                       "INTERNAL_ERROR",
                                                       "FLOW_CONTROL_ERROR",
                                                       "SETTINGS_TIMEOUT",
                                                       "STREAM_CLOSED",
                                                       "FRAME_SIZE_ERROR",
                                                       "REFUSED_STREAM",
                                                       "CANCEL",
                                                       "COMPRESSION_ERROR",
                                                       "CONNECT_ERROR",
                                                       "ENHANCE_YOUR_CALM",
                                                       "INADEQUATE_SECURITY",
                                                       "HTTP_1_1_REQUIRED"};
  const auto at = static_cast<std::size_t>(error);
  return at < kNames.size() ? kNames[at] : "an unknown error";
}

namespace {
constexpr std::uint8_t kCancelled = 1, kPermissionDenied = 7, kResourceExhausted = 8, kInternal = 13, kUnavailable = 14;
}  // namespace

std::uint8_t grpc_code_of_reset(H2Error error) {
  switch (error) {
    case H2Error::cancel:
      return kCancelled;
    case H2Error::inadequate_security:
      return kPermissionDenied;
    case H2Error::enhance_your_calm:
      return kResourceExhausted;
    case H2Error::refused_stream:
      return kUnavailable;
    default:
      return kInternal;
  }
}

H2Error reset_of_grpc_code(std::uint8_t code) {
  switch (code) {
    case kCancelled:
      return H2Error::cancel;
    case kPermissionDenied:
      return H2Error::inadequate_security;
    case kResourceExhausted:
      return H2Error::enhance_your_calm;
    default:
      return H2Error::internal_error;
  }
}

std::string_view h2_refused_head_reason(FaultKind kind) {
  return kind == FaultKind::not_implemented ? "the method is longer than 64 bytes" : "the request head exceeds a limit";
}

std::string_view h2_abuse_name(H2Abuse abuse) {
  constexpr std::array<std::string_view, kH2Abuses> kNames = {"none",        "resets", "control", "continuations",
                                                              "header_list", "memory", "unread"};
  return kNames[static_cast<std::size_t>(abuse)];
}

}  // namespace carpool::proxy::http
