-- Debugs a file with nvim-dap and the configuration of docs/debugging.md:
-- nvim --headless -u check.lua PROGRAM.
-- SNIPPET names the file with the configuration, NVIM_DAP a checkout of nvim-dap. It prints "ok" or the failure.
vim.opt.runtimepath:prepend(os.getenv("NVIM_DAP"))

local function finish(text)
  io.stdout:write(text .. "\n")
  vim.cmd("qall!")
end

local function wait(what, condition)
  if not vim.wait(60000, condition, 20) then error(what .. " did not come within a minute") end
end

local function debug_file()
  dofile(os.getenv("SNIPPET"))
  local dap = require("dap")
  local stops, printed, terminated = {}, "", false
  dap.listeners.after.event_stopped.check = function(_, body) table.insert(stops, body.reason .. " " .. body.line) end
  dap.listeners.after.event_output.check = function(_, body)
    if body.category == "stdout" then printed = printed .. body.output end
  end
  dap.listeners.after.event_terminated.check = function() terminated = true end
  local function stopped(want)
    local n = #stops
    return function()
      wait(want, function() return #stops > n and dap.session() and dap.session().current_frame end)
      assert(stops[#stops] == want, "got the stop " .. stops[#stops] .. ", want " .. want)
    end
  end

  vim.api.nvim_win_set_cursor(0, { 3, 0 })
  dap.toggle_breakpoint()
  local configuration
  for _, each in ipairs(dap.configurations.python) do
    if each.type == "glasshouse" then configuration = each end
  end
  local arrived = stopped("breakpoint 3")
  dap.run(configuration)
  arrived()
  local answer
  dap.session():request("evaluate", { expression = "n", context = "hover", frameId = dap.session().current_frame.id },
    function(err, response) answer = err and vim.inspect(err) or response.result end)
  wait("a hover", function() return answer end)
  assert(answer:match("^3\nline 2: "), "got the hover " .. answer .. ", want 3 with the line that set it")
  arrived = stopped("step 2")
  dap.step_over()
  arrived()
  arrived = stopped("breakpoint 3")
  dap.step_back()
  arrived()
  dap.clear_breakpoints()
  arrived = stopped("step 2")
  dap.step_over() -- to the live position
  arrived()
  dap.continue()
  wait("the end", function() return terminated end)
  assert(printed == "total is 7\n", "got the output " .. printed)
end

vim.api.nvim_create_autocmd("VimEnter", {
  callback = vim.schedule_wrap(function()
    local ok, failure = pcall(debug_file)
    finish(ok and "ok" or tostring(failure))
  end),
})
