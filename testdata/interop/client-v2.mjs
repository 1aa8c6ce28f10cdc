// The TypeScript SDK 2.4.0 (2026-07-28, and the legacy revisions) as a client; drive.mjs says how it is called.

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { z } from 'zod';
import { drive, INFO } from './drive.mjs';

const DECLARED = { 'elicitation/create': 'elicitation', 'sampling/createMessage': 'sampling', 'roots/list': 'roots' };

function transportFor(plan) {
  if (!plan.url) {
    return new StdioClientTransport({ command: plan.command, args: plan.args, env: process.env, stderr: 'inherit' });
  }
  const Transport = plan.transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
  return new Transport(plan.url, { requestInit: { headers: plan.headers } });
}

async function connect(plan, answer, notified, failed) {
  const mode = plan.mode === 'auto' || plan.mode === 'legacy' ? plan.mode : { pin: plan.mode };
  const client = new Client(INFO, { capabilities: plan.capabilities, versionNegotiation: { mode } });
  for (const [method, capability] of Object.entries(DECLARED)) {
    if (plan.capabilities[capability]) {
      client.setRequestHandler(method, request => answer(request));
    }
  }
  client.fallbackNotificationHandler = async notification => notified(notification);
  client.onerror = failed;
  const transport = transportFor(plan);
  await client.connect(transport, { timeout: plan.timeout });
  return {
    client,
    protocolVersion: () => client.getNegotiatedProtocolVersion(),
    close: async () => {
      await transport.terminateSession?.().catch(failed);
      await client.close();
    },
  };
}

// Every list is fetched anew, as the plan asks for what is on the wire and not for what is cached.
function send(client, { method, params }, options) {
  const fresh = { ...options, cacheMode: 'refresh' };
  switch (method) {
    case 'tools/list':
      return client.listTools(params, fresh);
    case 'tools/call':
      return client.callTool(params, options);
    case 'resources/list':
      return client.listResources(params, fresh);
    case 'resources/templates/list':
      return client.listResourceTemplates(params, fresh);
    case 'resources/read':
      return client.readResource(params, fresh);
    case 'resources/subscribe':
      return client.subscribeResource(params, options);
    case 'resources/unsubscribe':
      return client.unsubscribeResource(params, options);
    case 'prompts/list':
      return client.listPrompts(params, fresh);
    case 'prompts/get':
      return client.getPrompt(params, options);
    case 'completion/complete':
      return client.complete(params, options);
    case 'logging/setLevel':
      return client.setLoggingLevel(params.level, options);
    case 'ping':
      return client.ping(options);
    case 'server/discover':
      return client.discover(options);
    case 'subscriptions/listen':
      return client.listen(params.notifications, options).then(subscription => ({ honored: subscription.honoredFilter }));
    default:
      return client.request({ method, params }, z.looseObject({}), options);
  }
}

await drive({ sdk: 'typescript-sdk 2.4.0', connect, send });
