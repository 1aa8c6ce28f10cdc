// Whether Ajv takes a content for a schema (draft 2020-12, formats on):
//
//   {"schema": …, "content": …}  →  {"valid": true}
//                                   {"valid": false, "errors": [{"path", "keyword", "message"}]}
//                                   {"error": "…"}   the schema does not compile
//
// Unknown keywords and formats are ignored. Numbers are JavaScript's: digits beyond 2^53 are gone.

import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { eachLine } from './lines.mjs';

const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false, addUsedSchema: false });
addFormats.default(ajv);

await eachLine(line => {
  const { schema, content } = JSON.parse(line);
  try {
    const validate = ajv.compile(schema);
    if (validate(content)) {
      return { valid: true };
    }
    return { valid: false, errors: validate.errors.map(e => ({ path: e.instancePath, keyword: e.keyword, message: e.message })) };
  } catch (error) {
    return { error: error.message };
  } finally {
    ajv.removeSchema(schema);
  }
});
