#include "proxy/server/admin/streamed_body.h"

namespace carpool::proxy::admin {

std::unique_ptr<Body> Body::begin(const AdminRequest& request, Response& response) {
  if (!response.pieces) return nullptr;
  auto body = std::make_unique<Body>(std::move(response.pieces));
  body->gather();
  if (body->complete()) {
    response.body = std::move(body->made_);
    return nullptr;
  }
  if (accepts_gzip(request)) body->compressor_ = make_compressor();
  if (!body->compressor_) return body;
  set_gzip_headers(response);
  body->made_ = body->compressor_->compress(body->made_, false);
  return body;
}

void Body::step() {
  gather();
  if (!compressor_) return;
  made_ = compressor_->compress(made_, complete());
  if (complete()) compressor_.reset();  // frees the context for another response
}

std::string Body::take() {
  return std::exchange(made_, {});
}

void Body::gather() {
  made_.reserve(kStep + kStep / 4);
  while (made_.size() < kStep) {
    if (pieces_->next(made_)) continue;
    pieces_.reset();
    return;
  }
}

}  // namespace carpool::proxy::admin
