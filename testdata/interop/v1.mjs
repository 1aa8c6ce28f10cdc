// The adapter of drive.mjs for SDKs of the first generation, which differ only in their package.

import { INFO } from './drive.mjs';

// adapter takes the SDK's own modules, as their packages export them.
export function adapter(sdk, { Client, StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport, types }) {
  const REQUESTS = [types.ElicitRequestSchema, types.CreateMessageRequestSchema, types.ListRootsRequestSchema];

  const transportFor = plan => {
    if (!plan.url) {
      return new StdioClientTransport({ command: plan.command, args: plan.args, env: process.env, stderr: 'inherit' });
    }
    const Transport = plan.transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
    return new Transport(plan.url, { requestInit: { headers: plan.headers } });
  };

  const connect = async (plan, answer, notified, failed) => {
    const client = new Client(INFO, { capabilities: plan.capabilities });
    const declared = { 'elicitation/create': 'elicitation', 'sampling/createMessage': 'sampling', 'roots/list': 'roots' };
    for (const schema of REQUESTS) {
      const method = schema.shape.method.value;
      if (plan.capabilities[declared[method]]) {
        client.setRequestHandler(schema, request => answer(request));
      }
    }
    client.fallbackNotificationHandler = async notification => notified(notification);
    client.onerror = failed;
    const transport = transportFor(plan);
    let protocolVersion;
    transport.setProtocolVersion = (set => version => {
      protocolVersion = version;
      set?.call(transport, version);
    })(transport.setProtocolVersion);
    await client.connect(transport, { timeout: plan.timeout });
    return {
      client,
      protocolVersion: () => protocolVersion,
      close: async () => {
        await transport.terminateSession?.().catch(failed);
        await client.close();
      },
    };
  };

  const send = (client, { method, params = {} }, options) => {
    switch (method) {
      case 'tools/list':
        return client.listTools(params, options);
      case 'tools/call':
        return client.callTool(params, undefined, options);
      case 'resources/list':
        return client.listResources(params, options);
      case 'resources/templates/list':
        return client.listResourceTemplates(params, options);
      case 'resources/read':
        return client.readResource(params, options);
      case 'resources/subscribe':
        return client.subscribeResource(params, options);
      case 'resources/unsubscribe':
        return client.unsubscribeResource(params, options);
      case 'prompts/list':
        return client.listPrompts(params, options);
      case 'prompts/get':
        return client.getPrompt(params, options);
      case 'completion/complete':
        return client.complete(params, options);
      case 'logging/setLevel':
        return client.setLoggingLevel(params.level, options);
      case 'ping':
        return client.ping(options);
      default:
        return client.request({ method, params }, types.ResultSchema, options);
    }
  };

  return { sdk, connect, send };
}
