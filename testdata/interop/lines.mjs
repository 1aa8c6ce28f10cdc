// Line-oriented drivers: one value a line in, one JSON value a line out, in order.

import { text } from 'node:stream/consumers';

// eachLine gives every line of stdin to answer, and prints what it returns (or a promise of it resolves to).
export async function eachLine(answer) {
  const lines = (await text(process.stdin)).split('\n').filter(line => line.trim() !== '');
  const out = [];
  for (const line of lines) {
    out.push(JSON.stringify(await answer(line)) + '\n');
  }
  // Not process.exit by itself: what a pipe has not taken yet would be lost.
  process.stdout.write(out.join(''), () => process.exit(0));
}
