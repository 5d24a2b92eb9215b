"use strict";

// "Try it out" asks the service that this page came from.
function readyToTry(spec) {
  const base = location.href.slice(0, location.href.indexOf("/api/v1/docs"));
  spec.servers = [{ url: base, description: "The service that this page came from." }];
  spec.components.securitySchemes.APIKEY.description = "A key of the fleet, with or without `APIKEY` before it.";
  return spec;
}

// The key may be pasted alone.
function withScheme(request) {
  const key = request.headers && request.headers.Authorization;
  if (key && !/^apikey\s/i.test(key)) {
    request.headers.Authorization = `APIKEY ${key.trim()}`;
  }
  return request;
}

async function show() {
  const response = await fetch("openapi.json");
  SwaggerUIBundle({
    dom_id: "#page",
    spec: readyToTry(await response.json()),
    requestInterceptor: withScheme,
    deepLinking: true,
    displayRequestDuration: true,
    validatorUrl: null,
  });
}

show();
