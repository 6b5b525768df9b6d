/** Whatever a queue has stored goes out as a file and comes in again: also what no request may bring. */
import { describe, expect, it } from 'vitest';
import { Random } from '../../fuzz/random';
import { clock } from '../../support/clock';
import { exported, imported, jobsIn, linesIn } from '../../support/exports';
import { freshName, TestQueue } from '../../support/queue';
import { server, V1 } from '../../support/server';

server.emptyBeforeEach();
clock.startAtT0();

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

/** JSON texts. A few are refused as arguments, but not as the results of handlers that are pushed to. */
const VALUES = [
  ...['"\\ud83d"', '{"\\udc00":1}', '"\\u0000"', '"\\u2028\\u202e\\u001b[2J"', '""', 'null', '-0', '1e308'],
  ...['9007199254740993', '[123456789012345678901234567890]', '{"__proto__":{"a":1},"constructor":{},"toString":7}'],
  ...[nested(97), nested(98), nested(99), nested(100), `{"a":${nested(96)}}`, `"${'é'.repeat(100_000)}"`],
  ...['{"workflow":{"id":1},"body":{"args":[]}}', '"{\\"job\\":\\n"', '{"job":1,"part":2,"end":true}'],
];
const NAMES = [
  'ü'.repeat(255),
  '😀'.repeat(127),
  '__proto__',
  'constructor',
  'a/b',
  ' ',
  '%2e%2e',
  '\u202e',
  '..',
  'a',
];

/** A queue whose jobs have odd values wherever there may be some. */
class Odd {
  private readonly queue = new TestQueue('mail');

  constructor(private readonly random: Random) {}

  private value = () => this.random.pick(VALUES);
  private name = () => this.random.pick(NAMES);
  private text = () => JSON.parse(this.random.pick(VALUES.slice(0, 5)).replace(/^\{.*/, '"\\udc00"')) as string;

  /** One of the things that happen to a queue. What is refused has not happened. */
  async live(): Promise<void> {
    const { queue, random } = this;
    const send = (method: string, path: string, body: string) => server.call(method, `${V1}${path}`, body);
    switch (random.below(8)) {
      case 0: {
        const [group, tag] = [JSON.stringify(this.name()), JSON.stringify(this.name())];
        const options = `{"queue":"mail","group":${group},"tags":[${tag}],"unique":{"key":${tag}},"priority":${random.below(2)}}`;
        const job = `{"type":"test.odd","args":[${this.value()}],"meta":{"m":${this.value()}},"x_own":${this.value()},"options":${options}}`;
        await send('POST', '/jobs', job);
        return;
      }
      case 1:
      case 2:
        await send('POST', '/jobs', `{"type":"test.odd","args":[${this.value()}],"options":{"queue":"mail"}}`);
        return;
      case 3:
        await send('PUT', `/queues/mail/groups/${encodeURIComponent(this.name())}`, '{"concurrency":3}');
        return;
      case 4: {
        const [job] = await queue.claim();
        if (!job) return;
        await send('PUT', `/jobs/${job.id}/checkpoint`, `{"state":${this.value()},"metadata":{"m":${this.value()}}}`);
        const at = `/jobs/${job.id}/signals/${encodeURIComponent(this.name())}`;
        await send('POST', at, `{"payload":${this.value()}}`);
        await queue.ack(job.id, { result: this.value() });
        return;
      }
      case 5:
      case 6: {
        const [job] = await queue.claim();
        if (!job) return;
        const error = { message: this.text(), code: this.text(), type: this.text(), stack: this.text() };
        await queue.nack(job.id, { ...error, details: JSON.parse(this.value()), retryable: random.chance(0.5) });
        return;
      }
      default:
        clock.advance(60_000);
    }
  }
}

describe('a queue with odd values', () => {
  it.each(Array.from({ length: 8 }, (_, seed) => seed))(
    'is exported as the same file again (seed %i)',
    async (seed) => {
      const odd = new Odd(new Random(seed));
      await server.enqueue('mail');
      for (let n = 0; n < 60; n++) await odd.live();
      const file = await exported('mail', 'ended=true');
      expect(jobsIn(file).length).toBeGreaterThan(5);
      await server.reset();
      expect(await imported('mail', file)).toMatchObject({ imported: jobsIn(file).length, not_kept: {} });
      expect(await exported('mail', 'ended=true')).toBe(file);
      await new TestQueue('mail').evict();
      expect(await exported('mail', 'ended=true')).toBe(file);
    },
  );

  it('keeps each of them as a result, in an error and in a checkpoint', async () => {
    const queue = new TestQueue('mail');
    for (const value of VALUES) {
      const [done, failed] = [await queue.add(), await queue.add()];
      await queue.claim({ count: 2 });
      await queue.ack(done, { result: value });
      await queue.nack(failed, { message: 'a \ud83d half', details: JSON.parse(value), retryable: false });
    }
    const file = await exported('mail', 'ended=true');
    await server.reset();
    await imported('mail', file);
    expect(await exported('mail', 'ended=true')).toBe(file);
    expect(linesIn(file).at(-1)).toMatchObject({ not_kept: {} });
  });

  it('keeps names that are refused in requests', async () => {
    const queue = new TestQueue('mail');
    for (const name of ['.', '..']) await queue.add({ body: { group: name, tags: [name] }, group: name });
    const file = await exported('mail');
    await server.reset();
    await imported('mail', file);
    expect(await exported('mail')).toBe(file);
  });

  it('leaves out what an earlier release has stored too deeply nested to be shown, and says so', async () => {
    const queue = new TestQueue(freshName('deep'));
    const [lost, deep, plain] = [await queue.add(), await queue.add(), await queue.add()];
    await queue.claim({ count: 3 });
    // SQLite reads no more than 1000 levels: the content of such a job is lost.
    await queue.ack(lost, { result: nested(20_000) });
    await queue.ack(deep, { result: nested(800) });
    await queue.ack(plain, { result: nested(400) });
    const file = await exported(queue.name, 'ended=true');
    expect(linesIn(file).at(-1)).toMatchObject({ jobs: { completed: 2 }, not_kept: { damaged: 1, too_deep: 1 } });
    await server.reset();
    expect(await imported(queue.name, file)).toMatchObject({ imported: 2, not_kept: {} });
    expect(jobsIn(await exported(queue.name, 'ended=true'))).toEqual(jobsIn(file));
    expect(await server.ok(200, 'GET', `${V1}/jobs/${plain}/result`)).toMatchObject({
      result: JSON.parse(nested(400)),
    });
  });
});
