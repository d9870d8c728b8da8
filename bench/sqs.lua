-- What wrk sends to an SQS: `wrk … -s sqs.lua URL -- WHAT QUEUE_URL`, in JSON, as today's SDKs do. WHAT is one of send,
-- send-batch, take and take-batch; to take is to receive and then to delete what was received.

local BODY = string.rep("x", 200)
local TEN = 10

local what, queue, asking
local receipts = {}
-- Read by `done`, which runs elsewhere: global, for wrk finds only those.
deleted = 0
deletes = 0
filled = 0

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

local function ask(action, members)
  local headers = {
    ["X-Amz-Target"] = "AmazonSQS." .. action,
    ["Content-Type"] = "application/x-amz-json-1.0",
  }
  return wrk.format("POST", "/", headers, '{"QueueUrl":"' .. queue .. '",' .. members .. "}")
end

function init(arguments)
  what, queue = arguments[1], arguments[2]
  if what == "send" then
    asking = ask("SendMessage", '"MessageBody":"' .. BODY .. '"')
  elseif what == "send-batch" then
    local entries = {}
    for number = 1, TEN do
      entries[number] = '{"Id":"' .. number .. '","MessageBody":"' .. BODY .. '"}'
    end
    asking = ask("SendMessageBatch", '"Entries":[' .. table.concat(entries, ",") .. "]")
  else
    local most = what == "take" and 1 or TEN
    asking = ask("ReceiveMessage", '"MaxNumberOfMessages":' .. most .. ',"VisibilityTimeout":600')
    response = received
  end
end

-- Connections of a thread share what is to be deleted: whichever comes next takes it along.
function request()
  local given = table.remove(receipts)
  if given == nil then
    return asking
  end
  deleted = deleted + #given
  deletes = deletes + 1
  if what == "take" then
    return ask("DeleteMessage", '"ReceiptHandle":"' .. given[1] .. '"')
  end
  local entries = {}
  for number, receipt in ipairs(given) do
    entries[number] = '{"Id":"' .. number .. '","ReceiptHandle":"' .. receipt .. '"}'
  end
  return ask("DeleteMessageBatch", '"Entries":[' .. table.concat(entries, ",") .. "]")
end

function received(status, headers, body)
  local given = {}
  for receipt in string.gmatch(body, '"ReceiptHandle" *: *"([^"]+)"') do
    given[#given + 1] = receipt
  end
  if #given > 0 then
    receipts[#receipts + 1] = given
    filled = filled + 1
  end
end

function done(summary, latency, requests)
  local total = { deleted = 0, deletes = 0, filled = 0 }
  for _, thread in ipairs(threads) do
    for name, sum in pairs(total) do
      total[name] = sum + thread:get(name)
    end
  end
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"seconds":%f,"p50_ms":%f,"p99_ms":%f,"deleted":%d,"deletes":%d,"filled":%d,"failed":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    total.deleted, total.deletes, total.filled,
    errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end
