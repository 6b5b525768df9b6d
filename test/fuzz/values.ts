/** Values to send: some that look right for a member of that name, and some that nobody should send. */
import { V1 } from '../support/server';
import type { Random } from './random';
import type { Shape } from './shape';

/** Members that no request has. */
export const NOBODYS = [
  'unknown',
  'fuzz',
  '',
  'toString',
  '__proto__',
  'constructor',
  '..',
  'dryRun',
  '\u202e',
] as const;

/** Queues that the run addresses. The canary's are never among them. */
export const QUEUES = ['fuzz-a', 'fuzz-b', 'fuzz.c', 'fuzz-d'] as const;
const TYPES = ['fuzz.one', 'fuzz.two', 'work.echo', 'plain.echo', 'raw.any', 'down.any'];
const WORKERS = ['fuzz-worker-1', 'fuzz-worker-2'];
const NAMES = ['fuzz-name', 'fuzz-other', 'nightly', '__proto__', 'constructor', '..'];

/** What earlier answers named. */
export class Seen {
  private readonly byKind = new Map<string, string[]>();

  note(kind: string, value: string): void {
    const known = this.byKind.get(kind) ?? [];
    if (known.includes(value)) return;
    known.push(value);
    this.byKind.set(kind, known.slice(-40));
  }

  pick(random: Random, kind: string, otherwise: string): string {
    const known = this.byKind.get(kind);
    return known && known.length > 0 ? random.pick(known) : otherwise;
  }
}

/** Stands in a body for text that `JSON.stringify` would not write. */
const RAW: Readonly<Record<string, string>> = {
  '@raw:huge@': '1e400',
  '@raw:minus@': '-1e400',
  '@raw:lone@': '"a\\ud800b"',
  '@raw:zero@': '-0',
  '@raw:long@': '123456789012345678901234567890',
  '@raw:nested@': `${'['.repeat(120)}${']'.repeat(120)}`,
  '@raw:limit@': `${'['.repeat(100)}${']'.repeat(100)}`,
  '@raw:beyond@': `${'['.repeat(101)}${']'.repeat(101)}`,
  '@raw:pit@': `${'{"a":['.repeat(20_000)}${']}'.repeat(20_000)}`,
  '@raw:halfname@': '{"\\udfff":{"\\u0000":1}}',
  '@raw:proto@': '{"__proto__":{"admin":true},"constructor":{"prototype":1}}',
  '@raw:twice@': '{"queue":"fuzz-a","queue":7}',
};

/** A body as text. */
export function written(body: unknown): string {
  return JSON.stringify(body).replace(/"@raw:\w+@"/g, (name) => RAW[name.slice(1, -1)] ?? name);
}

const UNKNOWN_ID = '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee';

const TEXTS = [
  '',
  ' ',
  '\t\n',
  'a\u0000b',
  '__proto__',
  '.',
  '..',
  '%2e%2e',
  '漢'.repeat(250),
  'constructor',
  '*',
  '[a-',
  '?',
  '%',
  "' OR 1=1 --",
  '../../etc',
  'x'.repeat(256),
  'é'.repeat(5000),
  '🙂'.repeat(300),
  'y'.repeat(60_000),
  'null',
  '1e400',
  '-1',
  '0',
  '١٢٣',
  '9999-12-31T23:59:59Z',
  '+275760-09-13T00:00:00.001Z',
  '2026-02-30T00:00:00Z',
  'P99999999Y',
  'PT0S',
  '-PT1H',
  '+PT1H',
  UNKNOWN_ID,
  UNKNOWN_ID.toUpperCase(),
  'eyJhZnRlciI6e319',
  '\u202e\ufeff',
  'half \ud83d',
  '\udc00',
  '.',
  '..',
  'toString',
];

const SCALARS: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  0.5,
  1,
  255,
  65_536,
  2 ** 31,
  2 ** 53,
  -(2 ** 53),
  1e308,
  5e-324,
  ...[
    '@raw:huge@',
    '@raw:minus@',
    '@raw:lone@',
    '@raw:zero@',
    '@raw:long@',
    '@raw:nested@',
    '@raw:limit@',
    '@raw:beyond@',
    '@raw:pit@',
    '@raw:halfname@',
    '@raw:proto@',
    '@raw:twice@',
  ],
];

const LISTS: readonly (() => unknown)[] = [
  () => [],
  () => {
    return {};
  },
  () => [[]],
  () => [null],
  () => [{}],
  () => Array(1001).fill('fuzz'),
  () => Array(20_000).fill(1),
  () => Array(300).fill({ a: 1 }),
  () => Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`member${n}`, n])),
  () => Array.from({ length: 100 }, () => crypto.randomUUID()),
];

/** What nobody should send for a member. */
export function hostile(random: Random): unknown {
  const kind = random.below(10);
  if (kind < 5) return random.pick(TEXTS);
  return kind < 8 ? random.pick(SCALARS) : random.pick(LISTS)();
}

/** A text that nobody should send. */
export const hostileText = (random: Random): string => random.pick(TEXTS);

/** Members whose value makes an answer wait: the run would take as long as they say. */
const WAITS = /wait|^timeout|^block/i;

type Make = (random: Random, seen: Seen) => unknown;

const job = (random: Random): unknown => ({ type: random.pick(TYPES), args: [random.below(9)] });
const duration: Make = (random) => random.pick<unknown>(['PT1S', '30s', 60_000, 'PT1H', '1d', 1000]);
const id: Make = (random, seen) => seen.pick(random, random.pick(['job', 'job', 'workflow', 'id']), UNKNOWN_ID);

/** Values that look right, by the name of the member; the first that fits. */
const BY_NAME: readonly [RegExp, Make][] = [
  [WAITS, (random) => random.pick<unknown>([0, 5, 20, '0', 'PT0.01S'])],
  [/^(source|target)?_?queues?$|^queue_name$|target_queue/, (random) => random.pick(QUEUES)],
  [/ids$|^depends_on$/, (random, seen) => [id(random, seen), id(random, seen)]],
  [/worker/, (random) => random.pick(WORKERS)],
  [/cursor/, (random, seen) => seen.pick(random, 'cursor', 'x')],
  [/^after$/, (random, seen) => seen.pick(random, 'event', 'x')],
  [/id$/, id],
  [/^states?$/, (random) => random.pick(['available', 'active', 'scheduled', 'discarded', 'completed', 'cancelled'])],
  [/^types?$|_types?$/, (random) => random.pick(TYPES)],
  [/^args$/, (random) => random.pick<unknown[]>([[], [1], [{ user: 'u' }, 'é🙂']])],
  [/^jobs$|^steps$/, (random) => Array.from({ length: 1 + random.below(3) }, () => job(random))],
  [/^job$|^template$|^on_\w+$/, job],
  [/^meta(data)?$|^details$|^data$|^result$|^state$|^payload/, (random) => ({ note: 'fuzz', n: random.below(9) })],
  [/cron|expression|^schedule$/, (random) => random.pick(['*/5 * * * *', '0 3 * * 1', '@hourly'])],
  [/zone/, (random) => random.pick(['Europe/Berlin', 'UTC'])],
  [
    /_at$|since|until|before|_after$|time$/,
    (random) => random.pick(['2031-01-01T00:00:00Z', '+PT1H', '2020-01-01T00:00:00Z']),
  ],
  [/interval|period|delay|ttl|retention|age|older|_ms$|_in$|timeout|unique_for/, duration],
  [
    /max|min|count|limit|concurrency|attempt|priority|sequence|depth|page|offset|size|seed/,
    (random) => random.below(20),
  ],
  [/progress|coefficient|jitter|threshold|multiplier/, (random) => random.next()],
  [/percentage/, (random) => random.below(101)],
  [/^group$/, (random) => random.pick(NAMES)],
  [/confirm|atomic|enabled|paused|requeue|retryable|kill|pending/, (random) => random.chance(0.8)],
  [/tags|keys|classes|allowed|non_retryable/, (random) => [random.pick(NAMES), random.pick(TYPES)]],
];

/** A value that looks right for a member. */
export function plausible(random: Random, seen: Seen, name: string, shape: Shape): unknown {
  if (shape.words.size > 0 && random.chance(0.7)) return random.pick([...shape.words]);
  const known = BY_NAME.find(([pattern]) => pattern.test(name));
  if (known && random.chance(0.9)) return known[1](random, seen);
  return random.pick<unknown>([random.pick(NAMES), random.below(100), true, {}, [{}], ['fuzz'], [job(random)]]);
}

const MAX_DEPTH = 5;

/** A value for a member of which this is known. @param wild how often something hostile takes its place */
export function valueFor(random: Random, seen: Seen, name: string, shape: Shape, wild: number, depth = 0): unknown {
  if (random.chance(wild)) {
    const value = hostile(random);
    if (!WAITS.test(name) || typeof value !== 'number' || value <= 0) return value;
  }
  if (depth < MAX_DEPTH && shape.entry && !shape.entry.isEmpty && random.chance(0.8)) {
    const entry = shape.entry;
    return Array.from({ length: 1 + random.below(3) }, () => valueFor(random, seen, name, entry, wild, depth + 1));
  }
  if (depth < MAX_DEPTH && shape.members.size > 0 && random.chance(0.8))
    return objectFor(random, seen, shape, wild, depth);
  return plausible(random, seen, name, shape);
}

/** An object with some of the members that are known. */
export function objectFor(random: Random, seen: Seen, shape: Shape, wild: number, depth = 0): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  const density = random.pick([0.15, 0.4, 0.8]);
  for (const [name, member] of shape.members) {
    // Without these nothing else is read.
    const needed = /^(type|args|confirm|job|jobs|steps|job_id|job_ids|queues?|name|expression|worker_id)$/.test(name);
    if (!random.chance(needed ? 0.85 : density)) continue;
    Object.defineProperty(object, name, {
      value: valueFor(random, seen, name, member, wild, depth + 1),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  if (random.chance(wild / 2)) object[random.pick(NOBODYS)] = hostile(random);
  return object;
}

/** The value of a parameter of a path. */
export function inPath(random: Random, seen: Seen, path: string, name: string, wild: number): string {
  if (random.chance(wild))
    return random.pick([
      '%',
      '%ff',
      '%00',
      '%ud800',
      '.',
      '..%2f',
      encodeURIComponent(hostileText(random).toWellFormed()),
    ]);
  if (name === 'id') {
    const kind = /workflow/.test(path)
      ? 'workflow'
      : /worker/.test(path)
        ? 'worker'
        : /bulk/.test(path)
          ? 'operation'
          : 'job';
    return encodeURIComponent(seen.pick(random, kind, UNKNOWN_ID));
  }
  if (path.startsWith(`${V1}/cron`)) return random.pick(NAMES);
  return /queues/.test(path) ? random.pick(QUEUES) : encodeURIComponent(seen.pick(random, 'key', 'fuzz-key'));
}
