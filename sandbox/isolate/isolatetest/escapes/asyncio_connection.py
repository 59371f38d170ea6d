# family: network
# tries: to reach a port of the machine by asyncio
# invariant: 7
# layers: seccomp, network, landlock
# proof: arrived

import asyncio

_, writer = await asyncio.open_connection("127.0.0.1", port)
writer.write(nonce.encode())
await writer.drain()
writer.close()
"escaped"
