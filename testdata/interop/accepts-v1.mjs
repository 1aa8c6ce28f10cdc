// Which forms the TypeScript SDK 1.32.2 (2025-11-25) shows; accepts.mjs says how it is called.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { accepts, legacy } from './accepts.mjs';
import { INFO } from './drive.mjs';

const client = new Client(INFO, { capabilities: { elicitation: { form: {} } } });
await accepts(() => legacy(client, '2025-11-25', show => client.setRequestHandler(ElicitRequestSchema, ({ params }) => show(params))));
