// Which forms the TypeScript SDK 1.18.2 (2025-06-18) shows; accepts.mjs says how it is called.

import { Client } from 'sdk-2025-06-18/client/index.js';
import { ElicitRequestSchema } from 'sdk-2025-06-18/types.js';
import { accepts, legacy } from './accepts.mjs';
import { INFO } from './drive.mjs';

const client = new Client(INFO, { capabilities: { elicitation: {} } });
await accepts(() => legacy(client, '2025-06-18', show => client.setRequestHandler(ElicitRequestSchema, ({ params }) => show(params))));
