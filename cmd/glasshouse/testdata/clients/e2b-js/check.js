// Uses @e2b/code-interpreter, unchanged, as its README and its users do. The working folder has the lines of
// docs/clients.md, the environment their variables.
const assert = require('node:assert/strict')
const { execFileSync } = require('node:child_process')
const { readFileSync } = require('node:fs')
const { Sandbox } = require('@e2b/code-interpreter')

const rejects = (promise, words) =>
  assert.rejects(promise, (error) => {
    assert.match(String(error), words)
    return true
  })

async function main() {
  const printed = execFileSync(process.execPath, ['--input-type=module'], { input: readFileSync('e2b.js') })
  assert.equal(String(printed), '2\n')

  const sandbox = await Sandbox.create({ timeoutMs: 120_000, metadata: { purpose: 'js' }, envs: { ALWAYS: '2' } })
  try {
    await sandbox.runCode('x = 1')
    const execution = await sandbox.runCode('x+=1; x')
    assert.equal(execution.text, '2')
    assert.equal(execution.executionCount, 2)
    console.log('runs code')

    const lines = []
    const results = []
    let failure
    const streamed = await sandbox.runCode(
      'import sys\nfor n in range(3): print(n)\nprint("e", file=sys.stderr)\nimport matplotlib.pyplot as plt\n' +
        'plt.plot([1])\nplt.show()\n1 / 0',
      {
        onStdout: (m) => lines.push(m.line),
        onStderr: (m) => assert.equal(m.line, 'e\n'),
        onResult: (r) => results.push(r),
        onError: (e) => (failure = e),
      },
    )
    assert.equal(lines.join(''), '0\n1\n2\n')
    assert.equal(Buffer.from(results[0].png, 'base64').subarray(1, 4).toString(), 'PNG')
    assert.equal(failure.name, 'ZeroDivisionError')
    assert.match(streamed.error.traceback, /^Traceback/)
    console.log('streams, shows charts')

    const info = await sandbox.files.write('/home/user/in.txt', 'hello')
    assert.equal(info.path, '/home/user/in.txt')
    await sandbox.files.write([
      { path: 'a/b.bin', data: new Uint8Array([0, 255]).buffer },
      { path: 'c.txt', data: new Blob(['c']) },
    ])
    assert.deepEqual([...(await sandbox.files.read('a/b.bin', { format: 'bytes' }))], [0, 255])
    assert.equal((await sandbox.runCode("open('in.txt').read() + open('/home/user/c.txt').read()")).text, 'helloc')
    assert.deepEqual((await sandbox.files.list('/home/user')).map((e) => e.name).sort(), ['a', 'artifacts', 'c.txt', 'in.txt'])
    assert.equal(await sandbox.files.makeDir('d/e'), true)
    assert.equal(await sandbox.files.makeDir('d/e'), false)
    await sandbox.files.rename('c.txt', 'd/e/f.txt')
    assert.equal(await sandbox.files.exists('d/e/f.txt'), true)
    await sandbox.files.remove('d')
    assert.equal(await sandbox.files.exists('d/e/f.txt'), false)
    await rejects(sandbox.files.read('none.txt'), /does not exist/)
    await rejects(sandbox.files.read('/etc/passwd'), /outside of \/home\/user/)
    await rejects(sandbox.commands.run('ls'), /not a shell/)
    console.log('keeps files')

    const context = await sandbox.createCodeContext({ cwd: '/home/user/a' })
    await sandbox.runCode("y = 1; open('here.txt', 'w').write('x')", { context })
    assert.equal((await sandbox.runCode('y')).error.name, 'NameError')
    assert.equal((await sandbox.runCode('y', { context })).text, '1')
    assert.equal(await sandbox.files.exists('a/here.txt'), true)
    assert.equal((await sandbox.listCodeContexts()).length, 2)
    await sandbox.restartCodeContext(context)
    assert.equal((await sandbox.runCode('y', { context })).error.name, 'NameError')
    await sandbox.removeCodeContext(context)
    await rejects(sandbox.runCode('1', { context }), /not found/)
    const envs = await sandbox.runCode("import os; os.environ['ONCE'] + os.environ['ALWAYS']", { envs: { ONCE: '1' } })
    assert.equal(envs.text, '12')
    console.log('has contexts')

    await rejects(sandbox.runCode('import time; time.sleep(60)', { timeoutMs: 500 }), /timed out/i)
    assert.equal((await sandbox.runCode('x')).text, '2')
    assert.equal((await sandbox.getInfo()).metadata.purpose, 'js')
    await sandbox.setTimeout(300_000)
    const same = await Sandbox.connect(sandbox.sandboxId)
    assert.equal((await same.runCode('x')).text, '2')
    const listed = await Sandbox.list({ query: { metadata: { purpose: 'js' } } }).nextItems()
    assert.deepEqual(listed.map((s) => s.sandboxId), [sandbox.sandboxId])
    await rejects(sandbox.pause(), /no pause/)
    const [fork] = await sandbox.fork()
    assert.equal((await fork.runCode('x')).text, '2')
    await fork.kill()
    await rejects(Sandbox.create({ apiKey: 'e2b_' + '0'.repeat(40) }), /unknown/)
    console.log('stops')
  } finally {
    await sandbox.kill()
  }
  assert.equal(await sandbox.isRunning(), false)
  await rejects(sandbox.runCode('1'), /was not found/)
  await rejects(sandbox.files.list('/home/user'), /was not found/)
  console.log('ends')
}

// The client keeps a timer of 60 s for each failed request, for which Node.js would wait.
main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
