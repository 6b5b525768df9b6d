/** One request of the run: made of what its route reads, in parts right and in parts wrong. */
import type { MountedRoute } from '../../src/http/routes';
import { type FuzzFile, fileFor, textOfFile } from './file';
import type { Random } from './random';
import type { RouteShape } from './shape';
import { hostile, hostileText, inPath, objectFor, QUEUES, type Seen, valueFor, written } from './values';

/** A request as it can be sent again. `bytes`: the body, where it is no text. */
export interface FuzzRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: string;
  bytes?: number[];
  /** The body, where it is a file that has no hashes yet. */
  file?: FuzzFile;
}

/** These act on whatever matches in all queues, unless they name one. They are made to name one, right or wrong. */
const ON_ALL_THAT_MATCHES = /\/jobs\/bulk\/(cancel|retry|delete)$|\/dead-letter(\/retry|\/purge)?$/;

/** These change all queues by their nature, and are sent before the canary is there. */
const ON_ALL_QUEUES = /\/queues\/_default\/config$|\/admin\/reset$|\/maintenance$/;

export const changesAllQueues = ({ method, path }: MountedRoute): boolean =>
  method !== 'GET' && ON_ALL_QUEUES.test(path);

const HEADER_NAMES = /^[\w-]+$/;

/** @param wild how often a value is one that nobody should send */
export function requestFor(
  random: Random,
  seen: Seen,
  route: MountedRoute,
  shape: RouteShape,
  wild: number,
): FuzzRequest {
  const { method } = route;
  const path = route.path.replace(/:(\w+)/g, (_, name: string) => inPath(random, seen, route.path, name, wild));
  const query = new URLSearchParams();
  for (const [name, member] of shape.query.members) {
    if (!random.chance(0.3)) continue;
    const value = valueFor(random, seen, name, member, wild);
    query.append(name, typeof value === 'string' ? value : JSON.stringify(value));
    if (random.chance(wild / 3)) query.append(name, hostileText(random));
  }
  const body = objectFor(random, seen, shape.body, wild);
  if (method !== 'GET' && ON_ALL_THAT_MATCHES.test(route.path)) narrow(random, route.path, query, body);
  const search = query.size > 0 ? `?${query.toString().slice(0, 8000)}` : '';
  const request: FuzzRequest = { method, path: path + search, headers: headersFor(random, shape, wild) };
  if (method === 'GET' || (shape.body.members.size === 0 && random.chance(0.7))) return request;
  request.body = written(body);
  if (/\/import$/.test(route.path) && random.chance(0.8)) {
    request.file = fileFor(random, wild);
    // Most queues have jobs.
    if (random.chance(0.7)) request.path = path + (query.has('merge') ? search : `${search || '?'}&merge=true`);
  }
  if (random.chance(wild / 3)) spoil(random, request);
  return request;
}

function narrow(random: Random, path: string, query: URLSearchParams, body: Record<string, unknown>): void {
  // Absent, null and empty mean all queues; everything else must name one or be refused.
  const wrong = [' ', '\u0000', '*', '%', 'x'.repeat(300), 7, {}, [' '], 'fuzz queue'];
  const queue = random.chance(0.7) ? random.pick(QUEUES) : random.pick<unknown>(wrong);
  if (path.endsWith('/purge')) {
    query.delete('queue');
    query.append('queue', typeof queue === 'string' ? queue : ' ');
    return;
  }
  const { filter = {} } = body;
  if (typeof filter !== 'object' || Array.isArray(filter)) return;
  body.filter = { ...filter, queue };
}

function headersFor(random: Random, shape: RouteShape, wild: number): Record<string, string> {
  const headers: Record<string, string> = { 'Content-Type': 'application/json' };
  if (random.chance(0.2)) headers['Idempotency-Key'] = `fuzz-${random.below(30)}`;
  if (!random.chance(wild)) return headers;
  const names = [...shape.headers].filter((name) => HEADER_NAMES.test(name) && !/^(authorization|host)$/i.test(name));
  const values = ['', ' ', 'x', 'x'.repeat(1000), 'text/plain', 'null', '9'.repeat(30), 'https://evil.example'];
  for (const name of ['Content-Type', 'Content-Encoding', 'Accept', ...names]) {
    if (random.chance(0.2)) headers[name] = random.pick(values);
  }
  return headers;
}

/** What is no JSON object at all. */
function spoil(random: Random, request: FuzzRequest): void {
  const text = request.body ?? '';
  const made: (() => string)[] = [
    () => text.slice(0, random.below(text.length + 1)),
    () => JSON.stringify(hostile(random)),
    () => `\ufeff${text}`,
    () => '',
    () => `${text}${text}`,
    () => `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`,
    () => text.replace(/[\d"]/, '\u0001'),
  ];
  if (random.chance(0.2)) {
    delete request.body;
    request.bytes = [0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d];
  } else request.body = random.pick(made)();
}

/** The request as it is sent. */
export async function toRequest({ method, path, headers, body, bytes, file }: FuzzRequest): Promise<Request> {
  const sent = bytes ? Uint8Array.from(bytes) : file ? await textOfFile(file) : body;
  return new Request(`http://localhost${path}`, { method, headers, ...(sent !== undefined && { body: sent }) });
}
