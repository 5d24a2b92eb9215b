"use strict";

const DAY_MS = 24 * 60 * 60 * 1000;

function daysAgo(days) {
  return new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
}

function daysSinceMonday() {
  return (new Date().getUTCDay() + 6) % 7;
}

// The latest Monday before today (UTC): a start_date that every endpoint takes.
function lastMonday() {
  return daysAgo(daysSinceMonday() || 7);
}

// The time of the latest report that `reports build --due` builds.
function latestReportTime() {
  return `${daysAgo(daysSinceMonday())}T00:00:00`;
}

// "Try it out" asks the service that this page came from, with parameters that hold today in the demonstration fleet.
function readyToTry(spec) {
  const base = location.href.slice(0, location.href.indexOf("/api/v1/docs"));
  spec.servers = [{ url: base, description: "The service that this page came from." }];
  spec.components.securitySchemes.APIKEY.description = "A key of the fleet, with or without `APIKEY` before it.";
  for (const path of Object.values(spec.paths)) {
    for (const parameter of path.get.parameters) {
      if (parameter.name === "start_date") {
        parameter.example = lastMonday();
      } else if (parameter.name === "report_time") {
        parameter.example = latestReportTime();
      } else if (parameter.required) {
        parameter.example = parameter.schema.examples[0];
      }
    }
  }
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
