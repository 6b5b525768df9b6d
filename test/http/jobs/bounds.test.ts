/** The bounds of a job's members, as the document of the API has them, are those of the server. */
import { describe, expect, it } from 'vitest';
import { documentText } from '../../../src/http/openapi/routes';
import { freshName } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

type Schema = Json & { anyOf?: Schema[]; items?: Schema };

const { schemas } = (
  JSON.parse(documentText('/')) as { components: { schemas: Record<string, { properties: Schema }> } }
).components;

/** The members of a body that have a schema of their own, without null. */
function membersOf(name: string): [string, Schema[]][] {
  const properties = schemas[name]?.properties as unknown as Record<string, Schema>;
  return Object.entries(properties).map(([member, schema]) => [
    member,
    flat(schema).filter(({ type }) => type !== 'null'),
  ]);
}

const flat = (schema: Schema): Schema[] => schema.anyOf?.flatMap(flat) ?? [schema];

/** Values at the bounds of a schema, and beyond them. */
function casesOf(schema: Schema): { at: unknown[]; beyond: unknown[] } {
  const {
    type,
    minimum,
    maximum,
    minLength,
    maxLength,
    maxItems,
    pattern,
    enum: words,
    items,
  } = schema as {
    [name: string]: unknown;
    items?: Schema;
  };
  const types = [type].flat();
  const at: unknown[] = [];
  const beyond: unknown[] = [];
  if (typeof minimum === 'number') at.push(minimum) && beyond.push(minimum - 1, minimum + 0.5);
  if (typeof maximum === 'number') at.push(maximum) && beyond.push(maximum + 1);
  if (typeof maxLength === 'number') at.push('a'.repeat(maxLength)) && beyond.push('a'.repeat(maxLength + 1));
  if (minLength === 1) at.push('a') && beyond.push('');
  if (pattern !== undefined) beyond.push('Not this');
  if (Array.isArray(words)) at.push(...words) && beyond.push('neither');
  if (typeof maxItems === 'number' && items) {
    const { at: good, beyond: bad } = casesOf(items);
    at.push(Array(maxItems).fill(good[0]), []);
    beyond.push(Array(maxItems + 1).fill(good[0]), ...bad.map((one) => [one]));
  }
  // What is of no type that the schema names.
  if (types[0] !== undefined && !types.includes('boolean')) beyond.push(true);
  if (types.includes('boolean')) at.push(true, false) && beyond.push('true');
  return { at, beyond };
}

/** Members that mean something only with others. */
const ALONE = new Set(['unique', 'retry', 'retention', 'target_url', 'idempotency_key', 'options']);

interface Case {
  member: string;
  value: unknown;
  isBeyond: boolean;
}

function casesIn(name: string): Case[] {
  return membersOf(name).flatMap(([member, branches]) => {
    if (ALONE.has(member) || branches.some(({ $ref }) => $ref)) return [];
    const cases = branches.map(casesOf);
    const at = cases.flatMap((one) => one.at);
    // Beyond one branch may be within another one.
    const beyond = branches.length > 1 ? [true, ''] : cases.flatMap((one) => one.beyond);
    return [
      ...at.map((value) => ({ member, value, isBeyond: false })),
      ...beyond.map((value) => ({ member, value, isBeyond: true })),
    ];
  });
}

const shown = (value: unknown) => JSON.stringify(value).slice(0, 60);

/** What the server makes of each case, where that is not what the document says. */
async function differencesOf(cases: Case[], send: (body: Json) => Promise<{ status: number; body: Json }>) {
  const differences: string[] = [];
  for (const { member, value, isBeyond } of cases) {
    const { status, body } = await send({ [member]: value });
    const isRefused = status === 400 || status === 422;
    const isRight = isBeyond ? isRefused : status === 200 || status === 201;
    if (!isRight) differences.push(`${member} ${shown(value)}: ${status} ${JSON.stringify(body).slice(0, 200)}`);
  }
  return differences;
}

describe('the bounds in the document of the API', () => {
  it('are those of a new job: what is at one is taken, what is beyond it is refused', async () => {
    const cases = casesIn('NewJob').filter(({ member }) => member !== 'args');
    const members = new Set(cases.filter(({ isBeyond }) => isBeyond).map(({ member }) => member));
    for (const member of ['type', 'queue', 'priority', 'timeout_ms', 'max_attempts', 'tags', 'version', 'schema']) {
      expect(members).toContain(member);
    }
    const queue = freshName('bounds');
    const send = (body: Json) => server.call('POST', `${V1}/jobs`, { type: 'a.b', args: [], queue, ...body });
    expect(await differencesOf(cases, send)).toEqual([]);
  });

  it('are those of a change', async () => {
    const cases = casesIn('JobChange');
    expect(cases.filter(({ isBeyond }) => isBeyond).length).toBeGreaterThan(8);
    const { id } = (await server.ok(201, 'POST', `${V1}/jobs`, {
      ...{ type: 'a.b', args: [], queue: freshName('bounds'), pending: true },
    })) as { id: string };
    const send = (body: Json) => server.call('PATCH', `${V1}/jobs/${id}`, body);
    expect(await differencesOf(cases, send)).toEqual([]);
  });
});
