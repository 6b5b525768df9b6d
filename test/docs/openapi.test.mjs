// The document of the API says what the code says, and a linter finds nothing wrong with it.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { textOfDocument as textOfMessages } from '../../.ci/asyncapi.mjs';
import { textOfTools } from '../../.ci/mcp.mjs';
import { textOfDocument } from '../../.ci/openapi.mjs';
import { read } from './source.mjs';

const PATH = 'docs/reference/openapi.json';

it('the document of the API is what its contracts make of it: node .ci/openapi.mjs writes it again', async () => {
  assert.equal(read(PATH), await textOfDocument());
});

it('the tools for agents are what the contracts make of them: node .ci/mcp.mjs writes them again', async () => {
  assert.equal(read('docs/reference/mcp.json'), await textOfTools());
});

it('the document of the messages is what their contracts make of it: node .ci/asyncapi.mjs writes it again', async () => {
  const text = read('docs/reference/asyncapi.json');
  assert.equal(text, await textOfMessages());
  const lead = (path) =>
    path
      .split('/')
      .slice(1)
      .reduce((at, name) => at?.[name], document);
  const document = JSON.parse(text);
  const refs = [...text.matchAll(/"\$ref": "([^"]+)"/g)].map(([, ref]) => ref);
  assert.deepEqual(
    refs.filter((ref) => lead(ref) === undefined),
    [],
  );
  assert.equal(document.asyncapi, '3.0.0');
});

it('the document of the API is OpenAPI 3.1', async () => {
  const document = JSON.parse(read(PATH));
  const validator = new Validator();
  const { valid, errors } = await validator.validate(structuredClone(document));
  assert.ok(valid, JSON.stringify(errors));
  assert.equal(validator.version, '3.1');
  // Each reference leads somewhere.
  const text = JSON.stringify(document);
  const missing = [...text.matchAll(/"\$ref":"#\/components\/(\w+)\/([^"]+)"/g)].filter(
    ([, kind, name]) => document.components[kind][name] === undefined,
  );
  assert.deepEqual(
    missing.map(([ref]) => ref),
    [],
  );
  const ids = [...text.matchAll(/"operationId":"([^"]+)"/g)].map(([, id]) => id);
  assert.equal(new Set(ids).size, ids.length);
});
