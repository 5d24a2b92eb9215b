-- Sends the requests of a file, one after the other and round again; they are whole, and separated by a zero byte.
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
    '\n{"sent": %d, "answered": %d, "bytes": %d, "us": %d, "p50_us": %d, "p99_us": %d, "refused": %d, "broken": %d}\n',
    thread:get("sent"), summary.requests, summary.bytes, summary.duration, latency:percentile(50),
    latency:percentile(99), errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
