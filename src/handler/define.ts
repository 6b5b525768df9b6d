/** The Worker around the handlers: it tells deliveries, the announcement and other requests apart. */
import { readCall } from './control';
import type { Host } from './host';
import { type LiveConnection, lineVoice, MessageBuffer } from './live-connection';
import { parseDeliveries, writeAnswer } from './protocol';
import type { Registry } from './registry';
import { newId, runDelivery } from './run';
import { runAll } from './run-all';
import { RUNNABLE, type Runnable, runnable } from './runnable';
import { serveRuns } from './thread';
import { Deadlines } from './time-limit';
import type { ExecutionContextLike, HandlerDefinition, HandlerFunction } from './types';
import { answerVoice } from './voice';
import type { Handlers, HandlerWorker, InferredEntry, KnownSettings, WorkerOptions } from './worker-types';

/** Characters of entries that wait for the others of their batch. */
const MAX_WAITING = 1_048_576;

const START = '{"results":[';
const END = ']}';

interface BatchBody {
  body: string | ReadableStream<Uint8Array>;
  isLines: boolean;
}

/** Answers with all entries, none of which may reject. @param line of an open call: its messages are among them */
async function batchAnswer(entries: readonly Promise<string>[], line?: LiveConnection): Promise<BatchBody> {
  const outbox = line?.outbox ?? new MessageBuffer();
  let chars = 0;
  let left = entries.length;
  if (left === 0) outbox.end();
  const isLarge = new Promise<undefined>((resolve) => {
    for (const entry of entries) {
      void entry.then((text) => {
        outbox.push(text);
        chars += text.length;
        if (chars > MAX_WAITING) resolve(undefined);
        if (--left === 0) outbox.end();
      });
    }
  });
  const all = await Promise.race([Promise.all(entries), isLarge, ...(line ? [line.spoken] : [])]);
  if (all && !line?.hasSpoken) return { body: `${START}${all.join(',')}${END}`, isLines: false };
  return { body: streamOf(outbox, line), isLines: line !== undefined };
}

/** What comes into the outbox: a line each on an open call, else the members of one list. */
function streamOf(outbox: MessageBuffer, line: LiveConnection | undefined): ReadableStream<Uint8Array> {
  const [start, between, behind, end] = line ? ['', '', '\n', ''] : [START, ',', '', END];
  let before = start;
  return new ReadableStream<Uint8Array>({
    async pull(stream) {
      const text = await outbox.next();
      const piece = text === undefined ? end : `${before}${text}${behind}`;
      before = between;
      if (piece !== '') stream.enqueue(new TextEncoder().encode(piece));
      if (text === undefined) stream.close();
    },
    cancel: () => line?.lose(),
  });
}

/** The path of the announcement: the types that this Worker can run. */
export const ANNOUNCEMENT_PATH = '/.well-known/tocsin';

/** The header of an answer that names the announcement it was given under, so that the queue notices a new one. */
const VERSION_HEADER = 'Tocsin-Announcement';

/** The type of an answer that is begun before its end: each line is an entry, or something that a run says. */
const LINES_TYPE = 'application/x-ndjson';

const WORKER_OPTIONS = ['fetch', 'path', 'log', 'use', 'onFailed', 'onDiscarded'];

/**
 * Makes the default export of a handler Worker from functions by job type, or from one function for all types.
 *
 * Deliver to it through a service binding and keep it off the public network (`workers_dev = false`): who can reach its
 * delivery path can run its handlers.
 *
 * The types of jobs are found from the handlers: from the schema in `args`, else from the `job` that a handler
 * declares. `defineHandlers<Jobs, Env>` takes them from a map of arguments by type instead, and then every type needs a
 * handler.
 *
 * @param handlers a function, or an object of functions and definitions; `"*"` takes every other type
 * @throws {TypeError} at module load when a type name, a handler or a setting is wrong
 * @example
 * type Jobs = { 'email.send': [{ to: string; subject: string }] };
 *
 * export default defineHandlers<Jobs, Env>({
 *   'email.send': {
 *     timeoutMs: 10_000,
 *     retry: { preset: 'sidekiq' },
 *     handler: async (job, ctx) => {
 *       const [email] = job.args;
 *       const body = JSON.stringify(email);
 *       const response = await fetch(ctx.env.MAIL_URL, { method: 'POST', body, signal: ctx.signal });
 *       if (!response.ok) throw new Error(`mail server answered ${response.status}`);
 *       return { accepted: email.to };
 *     },
 *   },
 * });
 */
export function defineHandlers(
  handler: HandlerFunction<unknown[], unknown, unknown>,
  options?: WorkerOptions,
): HandlerWorker<unknown, Record<string, HandlerFunction>>;
// The third parameter keeps this overload from calls that name the types of their jobs.
// biome-ignore lint/suspicious/noExplicitAny: the arguments of each type are found by inference
export function defineHandlers<Args extends Record<string, any>, Map, _Inferred>(
  handlers: { [Type in keyof Args]: InferredEntry<Args[Type]> } & Map & {
      [Type in keyof Map]: KnownSettings<Map[Type]>;
    },
  options?: WorkerOptions,
): HandlerWorker<unknown, Map>;
export function defineHandlers<
  Jobs extends Record<keyof Jobs, readonly unknown[]> = Record<string, unknown[]>,
  Env = unknown,
>(
  handlers: Handlers<NoInfer<Jobs>, NoInfer<Env>> | HandlerFunction<unknown[], unknown, NoInfer<Env>>,
  options?: WorkerOptions<NoInfer<Env>>,
): HandlerWorker<Env, { [Type in keyof Jobs]: HandlerFunction<Jobs[Type], unknown, Env> }>;
export function defineHandlers(handlers: unknown, options: WorkerOptions = {}): HandlerWorker {
  const { use, onFailed, onDiscarded } = options;
  const { registry, sink } = runnable(handlers, options.log, { use, onFailed, onDiscarded });
  checkOptions(options);
  const deliveryPath = options.path ?? (options.fetch ? '/' : undefined);

  const worker: Pick<HandlerWorker, 'fetch'> & Record<typeof RUNNABLE, Runnable> = {
    [RUNNABLE]: { registry, sink, serve: (port, data) => serveRuns(registry, sink, port, data) },
    async fetch(request: Request, env: unknown, executionCtx?: ExecutionContextLike): Promise<Response> {
      const isPost = request.method === 'POST';
      // Where every path takes deliveries, none is looked at: parsing it would put off the start of the job.
      const pathname = isPost && deliveryPath === undefined ? undefined : new URL(request.url).pathname;
      if (isPost && pathname === deliveryPath) {
        return await deliver(request, registry, { env, executionCtx, call: request, sink });
      }
      if (pathname === ANNOUNCEMENT_PATH && request.method === 'GET') return Response.json(registry.announcement());
      if (options.fetch) return await options.fetch(request, env, executionCtx ?? { waitUntil: () => undefined });
      if (pathname === ANNOUNCEMENT_PATH) return methodNotAllowed('GET');
      if (pathname === (deliveryPath ?? '/')) return methodNotAllowed('POST');
      return refusal(404, 'not_found', `Nothing is served at ${pathname}.`);
    },
  };
  // The member that holds the types of the handlers exists in types only.
  return worker as typeof worker & HandlerWorker;
}

/**
 * Gives a handler its types where it is defined apart from the map; at run time it returns the same value.
 * @example
 * export const resize = handler<[{ url: string; width: number }], { key: string }, Env>(async (job, ctx) => {
 *   const [image] = job.args;
 *   return { key: await store(ctx.env.IMAGES, image, ctx.signal) };
 * });
 */
export function handler<Args extends readonly unknown[] = unknown[], Result = unknown, Env = unknown>(
  run: HandlerFunction<Args, Result, Env>,
): HandlerFunction<Args, Result, Env>;
export function handler<Args extends readonly unknown[] = unknown[], Result = unknown, Env = unknown>(
  definition: HandlerDefinition<Args, Result, Env>,
): HandlerDefinition<Args, Result, Env>;
export function handler<T>(entry: T): T {
  return entry;
}

async function deliver(
  request: Request,
  registry: Registry,
  around: Omit<Host, 'control' | 'voice'>,
): Promise<Response> {
  let call: Awaited<ReturnType<typeof readCall>>;
  try {
    call = await readCall(request);
  } catch {
    return refusal(400, 'invalid_request', 'The body could not be read.');
  }
  const parsed = parseDeliveries(call.body, request.headers);
  if (parsed.kind === 'malformed') return refusal(400, 'invalid_request', `Not a delivery: ${parsed.problem}.`);
  const { control } = call;
  const version = { [VERSION_HEADER]: registry.version };
  if (parsed.kind === 'single') {
    return answered(writeAnswer(await runDelivery(parsed.delivery, registry, { ...around, control })), version);
  }
  const voice: Host['voice'] = ({ deliveryId = '' }, notes) =>
    control ? lineVoice(control.line, deliveryId) : answerVoice('never', notes, newId);
  const host: Host = { ...around, control, voice, deadlines: new Deadlines() };
  const runs = runAll(parsed.deliveries, registry, host);
  const entries = runs.map(async (run, at) => writeAnswer(await run, parsed.deliveries[at]?.deliveryId));
  const { body, isLines } = await batchAnswer(entries, control?.line);
  return answered(body, { ...version, ...(isLines && { 'Content-Type': LINES_TYPE }) });
}

function checkOptions(options: object): void {
  for (const [name, value] of Object.entries(options)) {
    if (!WORKER_OPTIONS.includes(name)) throw new TypeError(`defineHandlers: unknown option ${JSON.stringify(name)}`);
    if (name === 'use') continue;
    const expected = name === 'path' ? 'string' : 'function';
    if (value !== undefined && typeof value !== expected) {
      throw new TypeError(`defineHandlers: option ${name} must be a ${expected}`);
    }
  }
}

const methodNotAllowed = (allow: string): Response =>
  refusal(405, 'method_not_allowed', `Only ${allow} is served here.`, { Allow: allow });

const refusal = (status: number, code: string, message: string, headers: Record<string, string> = {}): Response =>
  Response.json({ error: { code, message, retryable: false } }, { status, headers });

const answered = (body: BodyInit, headers: Record<string, string>): Response =>
  new Response(body, { headers: { 'Content-Type': 'application/json', ...headers } });
