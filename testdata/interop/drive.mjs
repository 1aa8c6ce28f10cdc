// What the client drivers share: a plan on stdin, a target on argv, a record on stdout.
//
//   node client-v1.mjs URL               < plan.json
//   node client-v1.mjs COMMAND [ARG...]  < plan.json
//
// The plan is one JSON object; every member may be left out, and so may the plan.
//
//   transport     "http" (default) or "sse": which transport a URL is reached by
//   headers       sent with every HTTP request
//   mode          client-v2 only: "2026-07-28" (default), "auto" or "legacy"
//   capabilities  what the client declares; default: elicitation (form and url), sampling, roots
//   timeout       of one request, in milliseconds; default 30000
//   answers       ElicitResults, used in turn; then an accept that takes each
//                 field's default, or its first choice, or a sample of its type
//   sampling      the CreateMessageResult
//   roots         the roots that are listed
//   ops           requests to send, in turn: {"method", "params", "abortOnProgress"}; an array
//                 of them is sent at once; {"wait": METHOD} waits for that notification.
//                 Default: all lists that the server has.
//
// The record is one JSON object of what the SDK handed to its user after its own validation:
// {sdk, protocolVersion, server: {info, capabilities, instructions}, requests: [{method, params,
// answer}], results: [{method, params, result | error, progress}], notifications, errors}.
// results follow the order of ops. Exit 1 and a member connectError if there was no connection.

import { text } from 'node:stream/consumers';

const LISTS = [
  ['tools', 'tools/list'],
  ['resources', 'resources/list'],
  ['resources', 'resources/templates/list'],
  ['prompts', 'prompts/list'],
];

export const INFO = { name: 'interop-client', version: '1.0.0' };

export async function readPlan() {
  const input = process.stdin.isTTY ? '' : (await text(process.stdin)).trim();
  const plan = {
    transport: 'http',
    mode: '2026-07-28',
    headers: {},
    timeout: 30_000,
    capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } },
    answers: [],
    sampling: { role: 'assistant', model: 'interop', content: { type: 'text', text: 'sampled' } },
    roots: [{ uri: 'file:///interop', name: 'interop' }],
    ...(input ? JSON.parse(input) : {}),
  };
  const [target, ...args] = process.argv.slice(2);
  if (!target) {
    throw new Error('usage: client-*.mjs URL | COMMAND [ARG...]');
  }
  plan.url = /^https?:/.test(target) ? new URL(target) : undefined;
  plan.command = target;
  plan.args = args;
  return plan;
}

// drive connects, carries out the plan and prints the record. The adapter does what differs between SDKs:
//   sdk                                    name and version
//   connect(plan, answer, notified, failed) → {client, close()}
//   send(client, op, options)               → result
export async function drive({ sdk, connect, send }) {
  const plan = await readPlan();
  const record = { sdk, requests: [], results: [], notifications: [], errors: [] };
  const waiting = [];

  const answers = [...plan.answers];
  const answer = ({ method, params }) => {
    let result;
    switch (method) {
      case 'elicitation/create':
        result = answers.shift() ?? { action: 'accept', ...(params.requestedSchema && { content: fillIn(params.requestedSchema) }) };
        break;
      case 'sampling/createMessage':
        result = plan.sampling;
        break;
      case 'roots/list':
        result = { roots: plan.roots };
        break;
    }
    record.requests.push({ method, params, answer: result });
    return result;
  };
  const notified = ({ method, params }) => {
    record.notifications.push({ method, params });
    waiting.filter(w => w.method === method).forEach(w => w.done());
  };
  const failed = error => record.errors.push(String(error));

  let session;
  try {
    session = await connect(plan, answer, notified, failed);
  } catch (error) {
    process.stdout.write(JSON.stringify({ ...record, connectError: String(error) }) + '\n');
    process.exit(1);
  }
  const { client, close } = session;
  record.protocolVersion = session.protocolVersion();
  record.server = {
    info: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
  };

  const wait = method =>
    new Promise((resolve, reject) => {
      if (record.notifications.some(n => n.method === method)) {
        resolve();
        return;
      }
      const timer = setTimeout(() => reject(new Error(`no ${method} came`)), plan.timeout);
      waiting.push({ method, done: () => { clearTimeout(timer); resolve(); } });
    });
  const one = async op => {
    const entry = { ...op };
    record.results.push(entry);
    const abort = new AbortController();
    const options = { timeout: plan.timeout, signal: abort.signal };
    if (op.params?._meta?.progressToken === undefined) {
      options.onprogress = progress => {
        (entry.progress ??= []).push(progress);
        if (op.abortOnProgress) abort.abort(new Error('the plan says so'));
      };
    }
    try {
      entry.result = op.wait ? await wait(op.wait) : await send(client, op, options);
    } catch (error) {
      entry.error = { name: error.name, code: error.code, message: error.message, data: error.data };
    }
  };
  const capabilities = client.getServerCapabilities() ?? {};
  const ops = plan.ops ?? LISTS.filter(([c]) => capabilities[c]).map(([, method]) => ({ method }));
  for (const op of ops) {
    await (Array.isArray(op) ? Promise.all(op.map(one)) : one(op));
  }

  await close();
  process.stdout.write(JSON.stringify(record) + '\n', () => process.exit(0));
}

// fillIn answers a form as a user who changes nothing would.
function fillIn(schema) {
  const first = options => options?.[0]?.const;
  const sample = p => {
    if (p.default !== undefined) return p.default;
    const choice = first(p.oneOf) ?? first(p.anyOf) ?? p.enum?.[0];
    if (choice !== undefined) return choice;
    switch (p.type) {
      case 'boolean':
        return true;
      case 'integer':
      case 'number':
        return p.minimum ?? 1;
      case 'array':
        return [first(p.items?.anyOf) ?? p.items?.enum?.[0]].filter(v => v !== undefined);
    }
    const text = { email: 'a@example.com', uri: 'https://example.com/', date: '2026-01-02', 'date-time': '2026-01-02T03:04:05Z' };
    return text[p.format] ?? 'x'.repeat(Math.max(p.minLength ?? 0, 1));
  };
  return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, p]) => [name, sample(p)]));
}
