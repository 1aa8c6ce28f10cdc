// The TypeScript SDK 1.18.2 (2025-06-18) as a client; drive.mjs says how it is called.

import { Client } from 'sdk-2025-06-18/client/index.js';
import { SSEClientTransport } from 'sdk-2025-06-18/client/sse.js';
import { StdioClientTransport } from 'sdk-2025-06-18/client/stdio.js';
import { StreamableHTTPClientTransport } from 'sdk-2025-06-18/client/streamableHttp.js';
import * as types from 'sdk-2025-06-18/types.js';
import { drive } from './drive.mjs';
import { adapter } from './v1.mjs';

await drive(adapter('typescript-sdk 1.18.2', { Client, StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport, types }));
