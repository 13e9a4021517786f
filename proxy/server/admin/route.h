// Route: one path of the admin endpoint: its handler, and its description in /openapi.json. Declared once, in
// routes.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "pool/origin.h"
#include "proxy/server/admin/control.h"
#include "proxy/server/admin/request.h"
#include "proxy/server/admin/response.h"
#include "proxy/server/admin/view.h"

namespace carpool::proxy::admin {

struct Call {
  const AdminRequest& request;
  const AdminView& view;
  AdminControl& control;
};

struct Parameter {
  std::string_view name, schema, doc;  // `schema`: JSON Schema, as text
};

// Schema of an origin, in a path or a query.
inline constexpr std::string_view kOriginSchema =
    R"({"type": "string", "format": "origin", "example": "https://api.example.com"})";

// RouteOptions: the optional parts of a route.
struct RouteOptions {
  std::span<const Parameter> query{};
  std::uint16_t status = 200;      // status of success
  std::string_view body{};         // schema of the accepted JSON body
  std::string_view unavailable{};  // schema of a 503 that is not a problem, like `content` of a route
};

// Route: `method` GET includes HEAD. `content`: a schema of openapi_schemas.h, or a content type if it contains a "/".
struct Route {
  std::string_view path, method;
  Response (*handler)(const Call&);
  std::string_view doc, content;
  RouteOptions options{};
};

// PoolRoute: /pools/{origin}/NAME, for an existing pool, or for an origin that may have none yet.
struct PoolRoute {
  using OfPool = Response (*)(const Call&, const PoolInfo&);
  using OfOrigin = Response (*)(const Call&, const pool::Origin&);
  std::string_view name, method;
  std::variant<OfPool, OfOrigin> handler;
  std::string_view doc, content;
  RouteOptions options{};
};

std::span<const Route> routes();
std::span<const PoolRoute> pool_routes();

}  // namespace carpool::proxy::admin
