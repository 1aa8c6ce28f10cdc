// The TypeScript SDK 1.32.2 (2025-11-25) as a client; drive.mjs says how it is called.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { drive } from './drive.mjs';
import { adapter } from './v1.mjs';

await drive(adapter('typescript-sdk 1.32.2', { Client, StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport, types }));
