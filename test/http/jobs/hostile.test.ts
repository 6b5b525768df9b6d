/** Whatever a job carries comes through every read as it was sent, and breaks nothing. */
import { beforeEach, describe, expect, it } from 'vitest';
import { freshName } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

server.emptyBeforeEach();

let queue: string;
beforeEach(() => {
  queue = freshName('hostile');
});

/** JSON texts of a job's arguments. */
const PAYLOADS: Record<string, string> = {
  HTML: JSON.stringify(['<script>alert(1)</script>', '<img src=x onerror=alert(1)>', '&lt;b&gt;', '</script><!--']),
  'text from right to left': JSON.stringify(['\u202Egnp.exe\u202C', 'שלום', '\u2066\u2069']),
  'a long string': JSON.stringify(['x'.repeat(1_000_000)]),
  'names of prototypes': '[{"__proto__":{"a":1},"constructor":{"prototype":2},"toString":3,"hasOwnProperty":null}]',
  'control characters': JSON.stringify(['\u0001\u001f\u007f\u0085\u2028\u2029\ufeff']),
  'what looks like SQL or a pattern': JSON.stringify(["'; DROP TABLE jobs; --", '%_*?[]', '$.args', '\\']),
  'the largest exact integers, and the ends of doubles': '[9007199254740991,-9007199254740991,1e+308,5e-324,0.1,-0.5]',
  'characters beyond the first plane': JSON.stringify(['😀𝔘\u{10FFFF}', 'e\u0301', 'ﷺ']),
  'names that are empty, or long': JSON.stringify([{ '': 1, [`k${'x'.repeat(5000)}`]: { ' ': [] } }]),
};

/** The text of the answer, to see numbers as they were written. */
async function textOf(path: string): Promise<string> {
  const response = await server.send(new Request(`http://localhost${path}`));
  expect(response.status).toBe(200);
  return response.text();
}

/** A job with these arguments that has failed for good. */
async function failed(args: string, error: Json): Promise<string> {
  const options = JSON.stringify({ queue, retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } });
  const body = await server.ok(201, 'POST', `${V1}/jobs`, `{"type":"test.echo","args":${args},"options":${options}}`);
  await server.take(queue, { count: 1 });
  await server.nack(body.job?.id as string, { error });
  return body.job?.id as string;
}

describe.each(Object.entries(PAYLOADS))('%s', (_, args) => {
  it('comes through every read unchanged', async () => {
    const [first] = JSON.parse(args) as unknown[];
    const message = typeof first === 'string' ? first.slice(0, 8000) : JSON.stringify(first).slice(0, 8000);
    const id = await failed(args, { type: message.slice(0, 200), message });
    const inside = args.slice(1, -1);
    const reads = [
      `jobs/${id}`,
      `admin/jobs/${id}?timeline=true`,
      `jobs?queue=${queue}`,
      `dead-letter/${id}`,
      'dead-letter',
    ];
    for (const path of reads) {
      const text = await textOf(`${V1}/${path}`);
      expect([path, text.includes(inside)]).toEqual([path, true]);
    }
    const job = await server.ok(200, 'GET', `${V1}/admin/jobs/${id}?timeline=true`);
    expect((job.errors as Json[])[0]?.message).toBe(message);
    expect(JSON.stringify(job.args)).toBe(args);
    const { items } = await server.ok(200, 'GET', `${V1}/admin/failures`);
    expect(items).toMatchObject([{ count: 1, sample: { job_id: id } }]);
    const fingerprint = (items as Json[])[0]?.fingerprint;
    expect(job.fingerprint).toBe(fingerprint);
    const found = await server.ok(200, 'GET', `${V1}/admin/jobs?fingerprint=${fingerprint}&counts=true`);
    expect(found).toMatchObject({ total: 1, counts: { discarded: 1 }, items: [{ id }] });
    const clone = await server.ok(201, 'POST', `${V1}/admin/jobs/${id}/clone`, {});
    expect(JSON.stringify(clone.job?.args)).toBe(args);
    const edited = await server.ok(200, 'POST', `${V1}/admin/jobs/${id}/retry`, `{"args":${args}}`);
    expect(JSON.stringify(edited.job?.args)).toBe(args);
  });

  it('is shown in a list as far as 200 characters go, on request', async () => {
    await failed(args, { message: 'no' });
    const path = `${V1}/admin/jobs?queue=${queue}`;
    expect((await server.ok(200, 'GET', path)).items?.[0]).not.toHaveProperty('args');
    const [item] = (await server.ok(200, 'GET', `${path}&arguments=true`)).items as Json[];
    const shown = JSON.stringify(item?.args);
    if (args.length < 150) expect(shown).toBe(JSON.stringify(JSON.parse(args)));
    expect(shown.length).toBeLessThan(400);
    expect(await server.refusal('GET', `${path}&arguments=1`)).toMatchObject({ status: 400 });
  });

  it('is found by what it says', async () => {
    const id = await failed(args, { message: 'no' });
    const text = JSON.parse(args).find((arg: unknown) => typeof arg === 'string') as string | undefined;
    if (text === undefined) return;
    const word = encodeURIComponent(`"${text.slice(0, 100)}"`);
    const page = await server.ok(200, 'GET', `${V1}/admin/jobs?q=${word}`);
    expect(page.items?.map((item) => item.id)).toEqual([id]);
  });
});

describe('what no JSON text can hold', () => {
  it.each([
    ['half a character', '["\\ud800"]', 'args'],
    ['a number beyond the range of doubles', '[1e400]', 'args'],
    ['a number beyond it, deep inside', '[{"a":[-1e999]}]', 'args'],
  ])('%s is refused, in an enqueue, an edit and a clone alike', async (_, args) => {
    const id = await failed('[1]', { message: 'no' });
    const before = await server.job(id);
    const sent: [string, string][] = [
      ['jobs', `{"type":"test.echo","args":${args}}`],
      [`admin/jobs/${id}/retry`, `{"args":${args}}`],
      [`admin/jobs/${id}/clone`, `{"args":${args}}`],
    ];
    for (const [path, body] of sent) {
      expect([path, await server.refusal('POST', `${V1}/${path}`, body)]).toMatchObject([path, { status: 400 }]);
    }
    expect(await server.job(id)).toEqual(before);
  });
});
