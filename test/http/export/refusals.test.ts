/** What is no export, or not as it was exported, changes nothing, and its refusal names the line. */
import { describe, expect, it } from 'vitest';
import { EXPORT_VERSION, hashOf, MAX_LINE_CHARS } from '../../../src/export/file';
import { exported, fileOf, imported, jobsIn, linesIn, openExport, sendFile } from '../../support/exports';
import { TestQueue } from '../../support/queue';
import { type Json, server, TestServer, V1 } from '../../support/server';

server.emptyBeforeEach();

const JOB: Json = {
  ...{ id: '0190b6a5-0000-7000-8000-0000000000aa', type: 'test.echo', state: 'waiting', priority: 0 },
  ...{ attempt: 0, claims: 0, created_at: 1, enqueued_at: 1, body: { type: 'test.echo', args: [], meta: {} } },
};
const job = (change: Json = {}): Json => ({ job: { ...JOB, ...change } });
const body = (change: Json): Json => ({ body: { type: 'test.echo', args: [], meta: {}, ...change } });

/** The refusal of a file: its status, the line that it names, and its message. */
async function refusalOf(text: string, query = ''): Promise<[status: number, line: unknown, message: string]> {
  const { status, body: answer } = await sendFile('mail', text, query);
  return [status, answer.error?.details?.line, String(answer.error?.message)];
}

/** The same without the message. */
const placeOf = async (text: string, query = '') => (await refusalOf(text, query)).slice(0, 2);

async function manyJobs(queue: string, count: number): Promise<string> {
  for (let at = 0; at < count; at += 400) {
    const jobs = Array.from({ length: Math.min(400, count - at) }, (_, n) => ({
      type: 'test.echo',
      args: [at + n],
      options: { queue },
    }));
    await server.addAll(jobs);
  }
  return exported(queue);
}

const without = (text: string, from: number, count = 1) =>
  text
    .split('\n')
    .toSpliced(from - 1, count)
    .join('\n');

describe('a file that is not as it was exported', () => {
  it.each<[string, (text: string) => string, number, RegExp]>([
    ['is altered', (text) => text.replace('"args":[7]', '"args":[8]'), 52, /part 1, lines 2 to 51, is not as it was/],
    ['lacks a line', (text) => without(text, 9), 51, /part 1 should have 50 lines and has 49/],
    ['lacks what closes a part', (text) => without(text, 52), 52, /the part before it is not closed/],
    ['ends in a part', (text) => text.split('\n').slice(0, 20).join('\n'), 21, /ends before its end/],
    ['has a line twice', (text) => text.replace(/(\{"job".*\n)/, '$1$1'), 53, /should have 50 lines and has 51/],
    ['has another queue in its header', (text) => text.replace('"mail"', '"post"'), 52, /is not as it was exported/],
    ['goes on behind its end', (text) => `${text}{}\n`, 54, /behind the end/],
    [
      'has other counts',
      (text) => text.replace('"waiting":49', '"waiting":48'),
      53,
      /48 jobs were exported, the file has/,
    ],
    [
      'has another hash at its end',
      (text) => text.replace(/[0-9a-f]("}\n)$/, 'x$1'),
      53,
      /hash is not that of the parts/,
    ],
    ['has nothing in it', () => '', 1, /empty/],
    ['is no export', () => '{"jobs":[]}\n', 1, /not the beginning of an export/],
    ['is not JSON', () => 'id,type\n', 1, /not a JSON object/],
  ])('is refused: it %s', async (_, change, line, message) => {
    const file = await manyJobs('mail', 49);
    await server.reset();
    const changed = change(file);
    expect(changed).not.toBe(file);
    const [status, at, said] = await refusalOf(changed);
    expect([status, at]).toEqual([400, line]);
    expect(said).toMatch(message);
    expect(said).toContain(`Line ${line}: `);
  });

  it('changes nothing where its first part is wrong; parts before a wrong one stay, and are not taken twice', async () => {
    const file = await manyJobs('mail', 600);
    await server.reset();
    expect((await refusalOf(file.replace('"args":[7]', '"args":[8]')))[0]).toBe(400);
    expect(await server.queues()).toEqual([]);
    expect(await placeOf(file.replace('"args":[555]', '"args":[556]'))).toEqual([400, 604]);
    expect(await server.counts('mail')).toMatchObject({ available: 499 });
    expect(await imported('mail', file)).toMatchObject({ imported: 101, known: 499, complete: true });
    expect(await exported('mail')).toBe(file);
  });

  it('is refused with both versions if its version is later', async () => {
    const file = (await manyJobs('mail', 1)).replace('"version":1', '"version":7');
    const { status, body: answer } = await sendFile('other', file);
    expect(status).toBe(422);
    expect(answer.error).toMatchObject({
      code: 'unsupported',
      message: `Line 1: the file has version 7; this program reads files up to version ${EXPORT_VERSION}.`,
      details: { line: 1, version: 7, supported: EXPORT_VERSION },
    });
  });

  it('is refused when a line has no end', async () => {
    const header = '{"tocsin":"export","version":1,"queue":"mail","ended":false}\n';
    expect(await placeOf(`${header}${'x'.repeat(MAX_LINE_CHARS + 1)}`)).toEqual([400, 2]);
  });

  it('is refused when it is not text', async () => {
    const bytes = new Uint8Array([0x7b, 0xff, 0xfe]);
    const answer = await server.call('POST', `${V1}/admin/queues/mail/import`, bytes);
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'invalid_payload' } } });
  });
});

describe('a file that was passed on by other programs', () => {
  const cases: [string, (text: string) => string][] = [
    ['with CRLF', (text) => text.replaceAll('\n', '\r\n')],
    ['with an empty line at its end', (text) => `${text}\n`],
    ['with empty lines between all others', (text) => text.replaceAll('\n', '\n\n')],
    ['with empty lines in CRLF', (text) => text.replaceAll('\n', '\r\n\r\n')],
    ['with a byte order mark', (text) => `\ufeff${text}`],
    ['without its last line end', (text) => text.slice(0, -1)],
  ];

  it.each(cases)('is imported: %s', async (_, change) => {
    const file = await manyJobs('mail', 600);
    await server.reset();
    expect(await imported('mail', change(file))).toMatchObject({ imported: 600, complete: true });
    expect(await exported('mail')).toBe(file);
  });

  it('is refused with the lines that it has, if it was altered too', async () => {
    const file = (await manyJobs('mail', 49)).replace('"args":[7]', '"args":[8]').replaceAll('\n', '\n\n');
    await server.reset();
    const [status, line, message] = await refusalOf(file);
    expect([status, line]).toEqual([400, 103]);
    expect(message).toContain('lines 3 to 102,');
  });
});

describe('a line that says what no job can be', () => {
  it.each<[Json, string]>([
    [job({ id: 'x' }), 'job.id'],
    [job({ id: undefined }), 'job.id'],
    [job({ priority: 101 }), 'job.priority'],
    [job({ attempt: -1 }), 'job.attempt'],
    [job({ created_at: 1e300 }), 'job.created_at'],
    [job({ state: 'active' }), 'job.state'],
    [job({ state: 'dead' }), 'job.ended_at'],
    [job({ state: 'completed', ended_at: 2 }), 'job.run'],
    [job({ ended_at: 2 }), 'job.ended_at'],
    [job({ state: 'pending', due_at: 2 }), 'job.due_at'],
    [job({ lease: 1 }), 'job.lease'],
    [job({ type: 'Not a type' }), 'job.type'],
    [job({ history: { errors: [{ attempt: 1 }] } }), 'job.history.errors[0].occurred_at'],
    [job({ history: { snoozed: {} } }), 'job.history.snoozed.since'],
    [job({ history: { what: 1 } }), 'job.history.what'],
    [job({ checkpoint: { sequence: 1, created_at: 1, content: 7 } }), 'job.checkpoint.content'],
    [job(body({ type: 'test.other' })), 'job.body.type'],
    [job(body({ args: {} })), 'job.body.args'],
    [job(body({ meta: 7 })), 'job.body.meta'],
    [job(body({ timeout_ms: 'soon' })), 'job.body.timeout_ms'],
    [job(body({ workflow: { id: 'x', step: 1 } })), 'job.body.workflow'],
    [job(body({ fingerprint: 'x' })), 'job.body.fingerprint'],
    [job(body({ scheduled_at: '2040-01-01T00:00:00Z' })), 'job.body.scheduled_at'],
    [job(body({ rate_limit: { key: 7 } })), 'job.body.rate_limit.key'],
    [{ settings: { mode: 'on', config: {} } }, 'settings.mode'],
    [{ settings: { mode: 'active', config: { concurrency: 0 } } }, 'concurrency'],
    [{ settings: { mode: 'active', config: {}, groups: { acme: { weight: 'much' } } } }, 'weight'],
    [{ schedule: { name: 'a', expression: 'x', job_template: { type: 'a' } } }, 'schedule.expression'],
  ])('is refused with its number: %j', async (line, field) => {
    const fine = job({ id: '0190b6a5-0000-7000-8000-0000000000ab' });
    const answer = await sendFile('mail', await fileOf('mail', [fine, line]));
    expect(answer.body.error, JSON.stringify(answer.body)).toMatchObject({ details: { line: 3, field } });
    expect(answer.body.error?.message).toMatch(/^Line 3: /);
    expect([400, 422]).toContain(answer.status);
    expect(await server.queues()).toEqual([]);
  });

  it('is refused if it has a number beyond the range of doubles', async () => {
    const text = await fileOf('mail', [job(body({ args: ['number'] }))]);
    const line = (text.split('\n')[1] as string).replace('"number"', '1e400');
    const hashed = await hashOf(`${text.split('\n')[0]}\n${line}\n`);
    const file = [text.split('\n')[0], line, JSON.stringify({ part: 1, lines: 1, hash: hashed }), ''].join('\n');
    const [status, at, message] = await refusalOf(file);
    expect([status, at]).toEqual([400, 2]);
    expect(message).toMatch(/beyond the range of doubles/);
  });

  it.each([{ what: 1 }, { job: JOB, settings: {} }, {}])('is refused: %j', async (line) => {
    expect(await placeOf(await fileOf('mail', [line]))).toEqual([400, 2]);
  });
});

describe('a queue with other jobs', () => {
  it('takes no file, unless merge is said: then its own jobs and settings stay', async () => {
    await server.configure('mail', { concurrency: 7 });
    const [first = '', second = ''] = [await server.enqueue('mail'), await server.enqueue('mail', { args: [2] })];
    const file = await exported('mail');
    await server.configure('mail', { concurrency: 9 });
    await server.ok(200, 'DELETE', `${V1}/jobs/${first}`);
    await server.ok(200, 'POST', `${V1}/queues/mail/purge`, { states: ['cancelled'], confirm: true });
    const { status, body: answer } = await sendFile('mail', file);
    expect(status).toBe(409);
    expect(answer.error).toMatchObject({ code: 'conflict', details: { queue: 'mail', jobs: 1 } });
    expect(answer.error?.hint).toContain('merge=true');
    expect(await imported('mail', file, 'merge=true')).toMatchObject({
      ...{ imported: 1, known: 1, id_rows: 1 },
      not_kept: { settings: 1 },
    });
    expect(await server.job(first)).toMatchObject({ id: first, state: 'available' });
    expect((await server.takeIds('mail', { count: 9 })).sort()).toEqual([first, second].sort());
    expect(await server.ok(200, 'GET', `${V1}/queues/mail/config`)).toMatchObject({ config: { concurrency: 9 } });
  });

  it('leaves out a job whose id a job of another queue has', async () => {
    const id = await server.enqueue('mail');
    const file = await exported('mail');
    expect(await imported('post', file)).toMatchObject({ imported: 0, not_kept: { id_in_another_queue: 1 } });
    expect(await server.job(id)).toMatchObject({ queue: 'mail' });
    expect(await server.counts('post')).toMatchObject({ available: 0 });
  });

  it('leaves a schedule alone that has the name of one in the file', async () => {
    const schedule = (queue: string) => ({
      ...{ name: 'nightly', expression: '0 3 * * *' },
      job_template: { type: 'report.nightly', args: [], options: { queue } },
    });
    await server.ok(201, 'POST', `${V1}/cron`, schedule('mail'));
    const file = await exported('mail');
    expect(await imported('post', file)).toMatchObject({ schedules: 0, not_kept: { schedule_exists: 1 } });
    expect(await server.ok(200, 'GET', `${V1}/cron/nightly`)).toMatchObject({ queue: 'mail' });
  });
});

describe('an import that was cut off', () => {
  it('continues behind its last part, and brings no job back that has ended and is gone since', async () => {
    const file = await manyJobs('mail', 1200);
    await server.reset();
    const lines = file.split('\n');
    expect(await sendFile('mail', lines.slice(0, 900).join('\n'))).toMatchObject({ status: 400 });
    expect(await server.counts('mail')).toMatchObject({ available: 499 });
    await server.configure('mail', { retention: { completed: 'PT0S' } });
    await server.ack((await server.takeOne('mail')).id);
    await new TestQueue('mail').evict();
    expect(await imported('mail', file)).toMatchObject({ imported: 701, known: 499, complete: true });
    expect(await server.counts('mail')).toMatchObject({ available: 1199, completed: 0 });
    expect(await imported('mail', file)).toMatchObject({ imported: 0, known: 1200 });
    expect(await server.counts('mail')).toMatchObject({ available: 1199 });
  });

  it('can be sent in several requests, which name the first part', async () => {
    const file = await manyJobs('mail', 1200);
    await server.reset();
    const lines = file.split('\n');
    const ends = lines.flatMap((line, at) => (line.startsWith('{"part":') ? [at + 1] : []));
    const [end1 = 0, end2 = 0] = ends;
    const header = `${lines[0]}\n`;
    const hash = linesIn(file).find(({ part }) => part === 1)?.hash;
    const rest = `${header}${lines.slice(end2).join('\n')}`;
    const query = `file=${hash}&after_line=${end2 - 1}`;
    const [status, , message] = await refusalOf(rest, query);
    expect([status, message]).toEqual([409, 'Part 3 cannot be imported before part 1.']);
    expect((await refusalOf(rest, `after_line=${end2 - 1}`))[0]).toBe(400);
    expect(await imported('mail', `${lines.slice(0, end1).join('\n')}\n`)).toMatchObject({
      ...{ parts: 1, last_part: 1, imported: 499, complete: false },
    });
    const middle = `${header}${lines.slice(end1, end2).join('\n')}\n`;
    const at = `file=${hash}&after_line=${end1 - 1}`;
    const broken = middle.replace('"args":[555]', '"args":[556]');
    expect(await placeOf(broken, at)).toEqual([400, end2]);
    expect(await imported('mail', middle, at)).toMatchObject({ last_part: 2, imported: 500, complete: false });
    expect(await imported('mail', rest, query)).toMatchObject({ last_part: 3, imported: 201, complete: true });
    expect(await exported('mail')).toBe(file);
  });

  it('says what it would do in a dry run, and does nothing', async () => {
    const file = await manyJobs('mail', 600);
    const all = { dry_run: true, imported: 600, known: 0, complete: true, parts: 2 };
    await server.reset();
    expect(await imported('mail', file, 'dry_run=true')).toMatchObject(all);
    expect(await server.queues()).toEqual([]);
    expect((await refusalOf(file.replace('"args":[555]', '"args":[556]'), 'dry_run=true'))[0]).toBe(400);
    await imported('mail', file);
    const { items } = await server.ok(200, 'GET', `${V1}/admin/audit`);
    expect(items).toMatchObject([{ action: 'queue.import', target: 'mail', count: 600 }]);
  });
});

describe('an export', () => {
  it('needs a key that may see everything, where there are rules for redaction', async () => {
    await server.enqueue('mail');
    const keys = [{ key: 'k', scopes: ['admin:export'] }];
    const redacting = TestServer.with({ API_KEYS: JSON.stringify(keys), REDACT: 'password' });
    const path = `${V1}/admin/queues/mail/export`;
    const answer = await redacting.call('GET', path, undefined, { Authorization: 'Bearer k' });
    expect(answer).toMatchObject({
      status: 403,
      body: { error: { code: 'forbidden', details: { required_scope: 'data:reveal' } } },
    });
  });

  it('of a queue that does not exist is 404, and HEAD answers without a body', async () => {
    const missing = await openExport('nothing');
    expect([missing.status, (await missing.json()) as Json]).toMatchObject([404, { error: { code: 'not_found' } }]);
    await server.enqueue('mail');
    const path = new URL(`${V1}/admin/queues/mail/export`, 'http://localhost');
    const head = await server.send(new Request(path, { method: 'HEAD' }));
    expect([head.status, head.headers.get('Content-Type')]).toEqual([200, 'application/x-ndjson']);
    expect((await head.arrayBuffer()).byteLength).toBe(0);
  });

  it('makes a job of its own of one in a workflow, with the results before it, and says so', async () => {
    const { id, steps } = (await server.ok(201, 'POST', `${V1}/workflows`, {
      ...{ type: 'chain', name: 'test' },
      steps: ['test.one', 'test.two'].map((type) => ({ type, args: [], options: { queue: 'mail' } })),
    })) as Json;
    expect([id, steps]).toBeDefined();
    await server.ack((await server.takeOne('mail')).id, { result: { n: 1 } });
    const file = await expectJob('mail');
    expect(linesIn(file).at(-1)).toMatchObject({ not_kept: { workflow: 1 } });
    expect(jobsIn(file)).toMatchObject([{ body: { parent_results: [{ n: 1 }] } }]);
    await server.reset();
    await imported('mail', file);
    const taken = await server.takeOne('mail');
    expect(taken).toMatchObject({ type: 'test.two', parent_results: [{ n: 1 }] });
    expect(taken.workflow_id).toBeUndefined();
  });
});

/** An export with a job in it, once it is there. */
async function expectJob(queue: string): Promise<string> {
  for (;;) {
    const file = await exported(queue);
    if (jobsIn(file).length > 0) return file;
  }
}
