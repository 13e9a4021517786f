// Reviewer: an AdmissionReview (admission.k8s.io/v1) in, its answer out. Pure: bytes in, bytes out.
//
// A pod that is made with the label `carpool.io/inject: "true"` gets carpool, once: one that has it already is left
// alone. Its annotation `carpool.io/config-overlay` (TOML) is laid over the configuration; one that makes no valid
// configuration of it is refused, so that whoever applies the pod reads why, instead of finding it crash later.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace carpool::proxy::webhook {

enum class Outcome : std::uint8_t {
  injected,
  untouched,  // not asked for, or done before
  refused,    // asked for, and impossible: the pod is not admitted
  malformed,  // no AdmissionReview
};

enum class ReviewLimit : std::uint8_t { none, body, overlay };

struct Verdict {
  Outcome outcome = Outcome::malformed;
  std::string body;  // the answer, JSON
  std::string pod;   // NAMESPACE/NAME as far as they are known, for the log
  std::string why;   // refused and malformed: in words
  ReviewLimit over = ReviewLimit::none;
};

class Reviewer {
 public:
  // `injection`: what the chart made (injection.h). Its configuration is checked here.
  static Result<std::unique_ptr<Reviewer>> make(std::string_view injection);
  ~Reviewer();
  Verdict review(std::string_view body) const;

  struct Impl;
  explicit Reviewer(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace carpool::proxy::webhook
