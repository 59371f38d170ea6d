// Uses the code execution tool of @librechat/agents, unchanged, and the requests that LibreChat itself sends for uploads
// and downloads. The environment is that of the lines of docs/clients.md.
const assert = require('node:assert/strict')
const { createCodeExecutionTool, createBashExecutionTool } = require('@librechat/agents')

const base = process.env.LIBRECHAT_CODE_BASEURL
const key = process.env.LIBRECHAT_CODE_API_KEY
const nanoid = /^[A-Za-z0-9_-]{21}$/ // the IDs that LibreChat accepts

const authHeaders = { 'X-API-Key': key }
const tool = createCodeExecutionTool({ authHeaders })

// call invokes the tool as LibreChat's graph does. It returns the text for the model and the artifact for the host.
async function call(code, { lang = 'py', files, session, using = tool } = {}) {
  const message = await using.invoke({
    name: 'execute_code', type: 'tool_call', id: 'call', args: { lang, code }, session_id: session, _injected_files: files,
  })
  return [message.content, message.artifact]
}

async function fetchFile(session, id) {
  const response = await fetch(`${base}/download/${session}/${id}?kind=user&id=u1`, { headers: authHeaders })
  return [response.status, Buffer.from(await response.arrayBuffer())]
}

async function upload(name, body) {
  const form = new FormData()
  form.append('kind', 'user')
  form.append('id', 'u1')
  form.append('file', new Blob([body]), name)
  const response = await fetch(`${base}/upload`, { method: 'POST', headers: { ...authHeaders, 'User-Id': 'u1' }, body: form })
  const result = await response.json()
  assert.equal(result.message, 'success')
  return { id: result.files[0].fileId, storage_session_id: result.session_id, name, kind: 'user', resource_id: 'u1' }
}

async function main() {
  let [text, artifact] = await call('print(1 + 1)')
  assert.match(text, /stdout:\n2/)
  assert.match(artifact.session_id, nanoid)

  ;[text, artifact] = await call('import matplotlib.pyplot as plt\nplt.plot([1])\nplt.savefig("/mnt/data/plot.png")\nx = 1')
  assert.match(text, /1 persisted file\(s\) are available in \/mnt\/data, including 1 image/)
  assert.equal(artifact.files[0].name, 'plot.png')
  assert.match(artifact.files[0].id, nanoid)
  const [status, png] = await fetchFile(artifact.session_id, artifact.files[0].id)
  assert.equal(status, 200)
  assert.equal(png.subarray(1, 4).toString(), 'PNG')
  console.log('runs code, returns files')

  const files = artifact.files
  const session = artifact.session_id
  ;[text, artifact] = await call('import os\nprint(os.listdir("/mnt/data"))\ntry: x\nexcept NameError: print("new")', { files, session })
  assert.match(text, /plot\.png[^]*new/)
  assert.equal(artifact.session_id, session)
  assert.equal(artifact.files, undefined) // nothing is new
  console.log('keeps files, forgets variables')

  const data = await upload('data.csv', 'a,b\n1,2\n')
  const other = await upload('ünï code.txt', 'é')
  assert.match(data.id, nanoid)
  ;[text, artifact] = await call(
    'import pandas\ndf = pandas.read_csv("/mnt/data/data.csv")\nprint(df.b.sum(), open("ünï code.txt").read())\n' +
      'df.assign(c=3).to_csv("data.csv")',
    { files: [data, other, ...files] },
  )
  assert.match(text, /stdout:\n2 é/)
  assert.deepEqual(artifact.files.map((f) => f.name), ['data.csv'])
  ;[text] = await call('print(open("/mnt/data/data.csv").read())', { files: [data, ...artifact.files], session: artifact.session_id })
  assert.match(text, /,a,b,c/) // the version of the session, not the upload
  console.log('takes uploads')

  const object = await fetch(`${base}/sessions/${data.storage_session_id}/objects/${data.id}?kind=user&id=u1`, { headers: authHeaders })
  assert.ok(new Date((await object.json()).lastModified) > Date.now() - 3_600_000)
  const listed = await (await fetch(`${base}/files/${artifact.session_id}`, { headers: authHeaders })).json()
  assert.ok(listed.some((f) => f.name === 'data.csv' && f.metadata['original-filename'] === 'data.csv'))

  ;[text] = await call('print("before")\n1 / 0')
  assert.match(text, /before[^]*stderr:\nTraceback[^]*ZeroDivisionError/)
  ;[text] = await call('console.log(1)', { lang: 'js' })
  assert.match(text, /runs Python only/)
  ;[text] = await call('import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()')
  assert.match(text, /savefig/)
  const bash = createBashExecutionTool({ authHeaders })
  ;[text] = await call(undefined, { using: { invoke: () => bash.invoke({ name: 'bash_tool', type: 'tool_call', id: 'c', args: { command: 'ls' } }) } })
  assert.match(text, /runs Python only/)
  console.log('explains failures')

  const wrong = createCodeExecutionTool({ authHeaders: { Authorization: 'Bearer wrong' } })
  await assert.rejects(call('1', { using: wrong }), /not authorized/)
  const bearer = createCodeExecutionTool({ authHeaders: () => ({ Authorization: `Bearer ${key}` }) })
  assert.match((await call('print(3)', { using: bearer }))[0], /3/)
  console.log('asks for a key')
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
