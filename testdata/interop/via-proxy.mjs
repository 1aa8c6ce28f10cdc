// Runs a client against a URL through an HTTP proxy that it starts and stops, so that the conformance suite,
// which gives each client a server of its own, can test a client behind one:
//
//   conformance client --command "node via-proxy.mjs PROXY [FLAG...] -- CLIENT [ARG...]" --suite core
//
// The suite appends the URL. The proxy is called as PROXY FLAG... --listen 127.0.0.1:PORT URL, and the client with
// the same path on that port. The client's exit code is ours.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function listening(port, proxy) {
  while (proxy.exitCode === null && proxy.signalCode === null) {
    const socket = connect(port, '127.0.0.1');
    const up = await once(socket, 'connect').then(() => true, () => false);
    socket.destroy();
    if (up) return;
    await sleep(5);
  }
  throw new Error(`the proxy ended: ${proxy.exitCode ?? proxy.signalCode}`);
}

const args = process.argv.slice(2);
const split = args.indexOf('--');
const [proxyCommand, ...flags] = args.slice(0, split);
const [clientCommand, ...clientArgs] = args.slice(split + 1, -1);
const target = new URL(args.at(-1));

const port = await freePort();
const proxy = spawn(proxyCommand, [...flags, '--listen', `127.0.0.1:${port}`, target.href], { stdio: ['ignore', 'inherit', 'inherit'] });
let code = 1;
try {
  await listening(port, proxy);
  const url = args.at(-1).replace(target.origin, `http://127.0.0.1:${port}`);
  const client = spawn(clientCommand, [...clientArgs, url], { stdio: 'inherit' });
  [code] = await once(client, 'close');
} finally {
  proxy.kill();
}
process.exit(code ?? 1);
