// Whether a server on the TypeScript SDK 1.32.2 takes a content for the form that it asked with:
//
//   {"schema": …, "content": …}  →  {"valid": true, "content": …}   as its tool gets it
//                                   {"valid": false, "error": "…"}
//
// The server is a real one, connected to a client that is a few lines here.

import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { eachLine } from './lines.mjs';

// The SDK's validator says on stderr of each format that it does not know; the verdict is the same.
console.warn = () => {};

const server = new Server({ name: 'forms', version: '1.0.0' }, { capabilities: {} });
let answer;
const transport = {
  start: async () => {},
  close: async () => {},
  send: async ({ id, method }) => {
    if (method === 'elicitation/create') {
      queueMicrotask(() => transport.onmessage({ jsonrpc: '2.0', id, result: { action: 'accept', content: answer } }));
    }
  },
};
await server.connect(transport);
const initialized = new Promise(resolve => (server.oninitialized = resolve));
const clientInfo = { name: 'forms', version: '1.0.0' };
transport.onmessage({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: { elicitation: { form: {} } }, clientInfo },
});
transport.onmessage({ jsonrpc: '2.0', method: 'notifications/initialized' });
await initialized;

await eachLine(async line => {
  const { schema, content } = JSON.parse(line);
  answer = content;
  try {
    const result = await server.elicitInput({ message: 'form', requestedSchema: schema });
    return { valid: true, content: result.content };
  } catch (error) {
    return { valid: false, error: error.message };
  }
});
