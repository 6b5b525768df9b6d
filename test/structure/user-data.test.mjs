/**
 * The client leaves the names in users' own data as they are. Which members hold such data is a table of `src/producer/names.ts`,
 * and the contract says it, too: a member whose content has no names of ours. Whoever adds one decides here.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { root } from '../docs/dev.mjs';
import { loadText } from '../docs/source.mjs';

const { named, wired } = await loadText(`export { named, wired } from './producer/names';`);

/** Members of any content whose names are ours all the same, or that no client reads or sends by their names. */
const OURS = {
  args_schema: 'a second name of schema, which the client does not use',
  callbacks: 'workflows inside a workflow, by the name of an event',
  capabilities: 'what a deployment can do',
  checkpoint: 'sent and read as it is, beside the progress that it belongs to',
  chunk: 'read from a stream as it is',
  chunks: 'sent as they are',
  counts: 'by the names of queues, which are lower-case words with hyphens',
  ends: 'recorded by a handler as it is',
  error: 'an error, or recorded by a handler as it is',
  failed: 'recorded by a handler as it is',
  job_template: 'a job that a schedule enqueues',
  jobs: 'the jobs of a new workflow',
  limits: 'of groups, by their names: tested with the table',
  metadata: 'of a checkpoint or a webhook: tested with the table',
  not_kept: 'numbers, by what was not kept',
  options: 'the options of a job',
  override: 'the options of a job',
  params: 'of a tool, for agents only',
  rate_limit: 'an option of a job',
  results: 'by the ids of jobs',
  retry: 'a policy',
  runtime: 'how a handler is run',
  since: 'times, by the names of pools, which are those of queues',
  steps: 'by the names of steps: tested with the table',
  unique: 'an option of a job',
};

const schemas = Object.assign(
  {},
  ...['openapi', 'asyncapi'].map((name) => {
    return JSON.parse(readFileSync(join(root, `docs/reference/${name}.json`), 'utf8')).components.schemas;
  }),
);

/** Does a schema say nothing of the names in what it describes? A list says what its entries do. */
function isFree(schema) {
  const { $ref, anyOf, allOf, type, items, properties, additionalProperties: others } = schema ?? {};
  if ($ref) return isFree(schemas[$ref.split('/').at(-1)]);
  if (anyOf ?? allOf) return (anyOf ?? allOf).some(isFree);
  if (type === undefined) return !('enum' in schema || 'const' in schema);
  if ([type].flat().includes('array')) return isFree(items ?? {});
  return [type].flat().includes('object') && !properties && others !== false;
}

/** The members below a schema that may hold any names. */
function* freeIn(schema) {
  if (typeof schema !== 'object' || schema === null) return;
  for (const [name, member] of Object.entries(schema.properties ?? {})) if (isFree(member)) yield name;
  for (const [name, part] of Object.entries(schema)) {
    yield* name === 'properties' ? Object.values(part).flatMap((one) => [...freeIn(one)]) : freeIn(part);
  }
}

const free = [...new Set(Object.values(schemas).flatMap((schema) => [...freeIn(schema)]))].sort();

describe('the names in a member of any content', () => {
  for (const member of free.filter((name) => !Object.hasOwn(OURS, name))) {
    it(`are the user’s in ${member}`, () => {
      const content = { my_name: 1, yourName: { its_name: 2 } };
      for (const rename of [named, wired]) assert.deepEqual(Object.values(rename({ [member]: content })), [content]);
    });
  }

  it('are listed as ours for members of any content alone', () => {
    assert.deepEqual(
      Object.keys(OURS).filter((member) => !free.includes(member)),
      [],
    );
  });
});
