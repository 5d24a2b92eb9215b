-- Sends the requests of a file one after another, and starts again at its end. The file has complete HTTP requests,
-- separated by zero bytes.
local requests, thread = {}, nil
sent = 0

function setup(started)
  thread = started
end

function init(args)
  local file = assert(io.open(args[1], "rb"))
  for request in file:read("*a"):gmatch("[^%z]+") do
    requests[#requests + 1] = request
  end
end

function request()
  sent = sent + 1
  return requests[(sent - 1) % #requests + 1]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"sent": %d, "responses": %d, "bytes": %d, "us": %d, "p50_us": %d, "p99_us": %d, "error_statuses": %d, "socket_errors": %d}\n',
    thread:get("sent"), summary.requests, summary.bytes, summary.duration, latency:percentile(50),
    latency:percentile(99), errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
