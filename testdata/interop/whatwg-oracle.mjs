// How the WHATWG URL Standard reads a URL, by whatwg-url (the parser of jsdom):
//
//   "https://EXAMPLE.com:443/a"  →  {"href", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"}
//   "https://[::1"               →  {"error": "…"}

import { URL } from 'whatwg-url';
import { eachLine } from './lines.mjs';

await eachLine(line => {
  try {
    const { href, protocol, username, password, host, hostname, port, pathname, search, hash } = new URL(JSON.parse(line));
    return { href, protocol, username, password, host, hostname, port, pathname, search, hash };
  } catch (error) {
    return { error: error.message };
  }
});
