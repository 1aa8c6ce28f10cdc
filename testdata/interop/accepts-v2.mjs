// Which forms the TypeScript SDK 2.4.0 shows; accepts.mjs says how it is called. The forms come as they do in
// 2026-07-28, or with the argument "legacy" as they do in 2025-11-25.

import { Client } from '@modelcontextprotocol/client';
import { accepts, legacy, modern } from './accepts.mjs';
import { INFO } from './drive.mjs';

const isLegacy = process.argv[2] === 'legacy';
const [ask, version, mode] = isLegacy ? [legacy, '2025-11-25', 'legacy'] : [modern, '2026-07-28', { pin: '2026-07-28' }];
const client = new Client(INFO, { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } });
await accepts(() => ask(client, version, show => client.setRequestHandler('elicitation/create', ({ params }) => show(params))));
