/**
 * Requests to every route, made of what the routes read, with values right and wrong. Whatever is sent: no defect, no hang, an
 * error of the promised shape, and queues that were not addressed stay as they are.
 *
 * `npm run test:fuzz -- --runs N --seed S` sends more; a failure prints the requests so that they can be sent again.
 */
import { env, exports } from 'cloudflare:workers';
import { afterEach, expect, inject, it, vi } from 'vitest';
import type { Env } from '../../src/config';
import { createApp } from '../../src/http/app';
import { type MountedRoute, ROUTES } from '../../src/http/routes';
import { requestOf } from '../support/described';
import { server } from '../support/server';
import { faultOf, harvest, isNoJson, isStream } from './answer';
import { Canary } from './canary';
import { Random } from './random';
import { changesAllQueues, type FuzzRequest, requestFor, toRequest } from './request';
import { RouteShape, type Shape, Watcher, watchedBindings } from './shape';
import { NOBODYS, Seen } from './values';

const { runs, seed } = inject('fuzz');

/** Longer than any answer waits, by itself or because it was asked to. */
const HANG_MS = 65_000;

/** Requests to each route while its fields are learned. */
const LESSONS = 12;

/** How often a value is one that nobody should send: each request takes one of these. */
const WILD = [0, 0.03, 0.1, 0.3];

const MAX_FAULTS = 20;

type Fetch = (request: Request) => Promise<Response>;
const worker = (exports as unknown as { default: { fetch: Fetch } }).default;

afterEach(() => vi.restoreAllMocks());

/** Sends a request and gives its answer, and what is wrong with it. */
async function send(request: FuzzRequest, through: Fetch) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const hang = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), HANG_MS);
  });
  const answer = async () => {
    const response = await through(await toRequest(request));
    if (!isStream(response)) return { response, text: await response.text() };
    await response.body?.cancel();
    return { response, text: '' };
  };
  try {
    const answered = await Promise.race([answer(), hang]);
    if (!answered) return { fault: 'no answer' };
    const { response, text } = answered;
    const fault = faultOf(response, text, request);
    return { status: response.status, text: isNoJson(response) ? '' : text, fault };
  } catch (error) {
    return { fault: `the request failed: ${error instanceof Error ? error.stack : error}` };
  } finally {
    if (timer !== undefined) clearTimeout(timer);
  }
}

/** Members and words that an error names. */
function learnFromError(shape: RouteShape, text: string): void {
  const { error } = JSON.parse(text) as { error?: { message?: string; details?: { field?: unknown } } };
  const field = error?.details?.field;
  const named = typeof field === 'string' ? field : /^(\w+) is required/.exec(error?.message ?? '')?.[1];
  const [top] = named?.split(/[.[]/) ?? [];
  if (top !== undefined && !shape.body.members.has(top)) shape.named.add(top);
  const known = named === undefined ? undefined : (memberAt(shape.query, named) ?? shape.body.at(named));
  const list = /(?:must be one of|use|list of) ([\w, "-]+)\.?$/.exec(error?.message ?? '')?.[1];
  for (const word of list?.split(/,| or /) ?? []) {
    if (/^\s*"?[\w-]{2,30}"?\s*$/.test(word)) known?.words.add(word.replaceAll('"', '').trim());
  }
}

const memberAt = (query: Shape, name: string): Shape | undefined => query.members.get(name);

function leadsElsewhere(route: MountedRoute, path: string): boolean {
  const { pathname } = new URL(path, 'http://localhost');
  return pathname.split('/').length < route.path.split('/').length;
}

/** Learns what each route reads. */
async function learn(random: Random, seen: Seen): Promise<Map<MountedRoute, RouteShape>> {
  const app = createApp();
  const watcher = new Watcher();
  watcher.start();
  const bindings = watchedBindings(env, watcher) as Env;
  const shapes = new Map(ROUTES.map((route) => [route, new RouteShape()]));
  for (let lesson = 0; lesson < LESSONS; lesson++) {
    for (const [route, shape] of shapes) {
      const request = requestFor(random, seen, route, shape, 0.02);
      // An id of dots leads to another route, whose members are not those of this one.
      if (leadsElsewhere(route, request.path)) continue;
      if (route.method !== 'GET') request.body ??= '{}';
      const { status, text } = await watcher.watching(shape, request.body, () =>
        send(request, async (sent) => app.fetch(sent, bindings)),
      );
      if (!text || status === undefined) continue;
      if (status >= 400) learnFromError(shape, text);
      else harvest(route.path, JSON.parse(text), seen);
    }
  }
  vi.restoreAllMocks();
  return shapes;
}

/** What a route reads of a request and its contract does not name. */
function unnamedIn({ method, path }: MountedRoute, shape: RouteShape): string[] {
  const { query, body } = shape;
  const named = requestOf(method, path);
  if (!named) return [];
  // A key may come so; errors name parameters of the path, too; and all lists that have pages read a cursor.
  const known = new Set<string>([
    'access_token',
    ...NOBODYS,
    ...Array.from(path.matchAll(/:(\w+)/g), ([, name = '']) => name),
  ]);
  if (named.query.has('offset')) known.add('cursor');
  const parameters = [...query.members.keys()].filter((name) => !named.query.has(name));
  const read = [...body.members.keys()].filter((name) => !shape.named.has(name));
  const members = read.filter((name) => named.body && !named.body.has(name));
  return [...parameters, ...members].filter((name) => !known.has(name)).map((name) => `${method} ${path}: ${name}`);
}

it(`${runs} requests (seed ${seed}) meet no defect and hurt no other queue`, { timeout: 3_600_000 }, async () => {
  const random = new Random(seed);
  const seen = new Seen();
  const logged: string[] = [];
  const listen = () =>
    vi.spyOn(console, 'error').mockImplementation((...words: unknown[]) => {
      const text = words.map((word) => (word instanceof Error ? word.stack : String(word))).join(' ');
      logged.push(text.slice(0, 1500));
    });
  listen();
  const shapes = await learn(random, seen);
  listen();
  const learned = [...shapes.values()].reduce((sum, { body, query }) => sum + body.size + query.size, 0);
  // Far fewer would mean that the routes are read in a way that is not watched any more.
  expect(learned).toBeGreaterThan(500);
  expect([...shapes].flatMap(([route, shape]) => unnamedIn(route, shape))).toEqual([]);

  const faults = new Map<string, string>();
  const statuses = new Map<string, number>();
  const one = async (routes: readonly MountedRoute[]) => {
    const route = random.pick(routes);
    const request = requestFor(random, seen, route, shapes.get(route) as RouteShape, random.pick(WILD));
    logged.length = 0;
    const { status, text, fault } = await send(request, (sent) => worker.fetch(sent));
    const group = `${String(status)[0]}xx`;
    statuses.set(group, (statuses.get(group) ?? 0) + 1);
    if (fault !== undefined) {
      const kind = `${route.method} ${route.path}: ${fault.split('\n')[0]?.replace(/\d{4,}/, '…')}`;
      if (!faults.has(kind))
        faults.set(kind, `${kind}\n  ${JSON.stringify(request).slice(0, 3000)}\n  ${logged.join('\n  ')}`);
    } else if (status !== undefined && status < 300 && text) harvest(route.path, JSON.parse(text), seen);
  };

  const narrow = ROUTES.filter((route) => !changesAllQueues(route));
  const wide = ROUTES.filter(changesAllQueues);
  for (let n = 0; n < runs / 20; n++) await one(n % 4 === 0 ? wide : narrow);
  await server.reset();

  const canary = new Canary();
  await canary.prepare();
  for (let n = 0; n < runs && faults.size < MAX_FAULTS; n++) await one(narrow);
  const counts = [...statuses].map(([group, count]) => `${group} ${count}`).join(', ');
  vi.restoreAllMocks();
  console.info(`fuzz: ${learned} members learned; ${counts}`);
  try {
    await canary.check();
  } catch (error) {
    faults.set('canary', `The canary was hurt: ${error instanceof Error ? error.stack : error}`);
  }
  if (faults.size > 0)
    throw new Error(`seed ${seed}: ${faults.size} kinds of faults\n${[...faults.values()].join('\n\n')}`);
});
