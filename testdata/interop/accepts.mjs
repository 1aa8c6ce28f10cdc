// What the accepts-*.mjs drivers share: one requestedSchema a line on stdin, one verdict a line on stdout,
//
//   {"ok": true, "schema": {…}}     a client handed the form to its user, and this is what it kept of it
//   {"ok": false, "error": "…"}     it refused the request
//
// The client is a real one, connected to a server that is a few lines here, so that what counts is what it does
// and not which of its schemas we think that it uses.

import { eachLine } from './lines.mjs';

// accepts answers every line with the ask that connect resolves to: legacy or modern, below.
export async function accepts(connect) {
  const ask = await connect();
  await eachLine(line => ask(JSON.parse(line)));
}

// legacy asks by a server's own request, elicitation/create.
export async function legacy(client, protocolVersion, setHandler) {
  let seen;
  setHandler(params => {
    seen = params;
    return { action: 'decline' };
  });
  let answered;
  const transport = {
    start: async () => {},
    close: async () => {},
    send: async message => {
      if (message.method === 'initialize') {
        const result = { protocolVersion, capabilities: {}, serverInfo: { name: 'forms', version: '1' } };
        queueMicrotask(() => transport.onmessage({ jsonrpc: '2.0', id: message.id, result }));
      } else if (message.method === undefined) {
        answered(message);
      }
    },
  };
  await client.connect(transport);
  let id = 0;
  return async requestedSchema => {
    seen = undefined;
    const answer = new Promise(resolve => (answered = resolve));
    transport.onmessage({ jsonrpc: '2.0', id: id++, method: 'elicitation/create', params: { message: 'form', requestedSchema } });
    const { error } = await answer;
    return verdict(seen, error);
  };
}

// modern asks by an input_required result of tools/call.
export async function modern(client, protocolVersion, setHandler) {
  let seen, requestedSchema;
  setHandler(params => {
    seen = params;
    return { action: 'decline' };
  });
  const results = {
    'server/discover': () => ({ supportedVersions: [protocolVersion], capabilities: { tools: {} }, ttlMs: 0, cacheScope: 'private', resultType: 'complete' }),
    'tools/call': params =>
      params.inputResponses
        ? { content: [], resultType: 'complete' }
        : { resultType: 'input_required', inputRequests: { form: { method: 'elicitation/create', params: { message: 'form', mode: 'form', requestedSchema } } } },
  };
  const transport = {
    start: async () => {},
    close: async () => {},
    send: async ({ id, method, params }) => {
      if (id !== undefined) {
        queueMicrotask(() => transport.onmessage({ jsonrpc: '2.0', id, result: results[method](params) }));
      }
    },
  };
  await client.connect(transport);
  return async schema => {
    [seen, requestedSchema] = [undefined, schema];
    const error = await client.callTool({ name: 'form' }).then(() => undefined, e => e);
    return verdict(seen, error);
  };
}

function verdict(seen, error) {
  if (seen !== undefined) {
    return { ok: true, schema: seen.requestedSchema };
  }
  return { ok: false, error: String(error?.message ?? 'the client did not show the form') };
}
