/** A queue that keeps its call open: it delivers jobs, hears what their runs say, and replies. */
import type { HandlerWorker } from '../../src/handler';
import type { Result, TestJob } from './deliver';

/** What a run says, or how it ended. */
export interface Said extends Partial<Result> {
  call?: number;
  log?: { at: number; level: string; message: string; fields?: object }[];
  progress?: object;
  checkpoint?: unknown;
  step?: { name: string; result?: unknown; timed_out?: true };
  recall?: string;
  stream?: { name: string; first: number; chunks: unknown[]; execution: number; step?: string; flush?: true };
  signal_url?: { signal: string; choices?: string[]; title?: string; expires_in: number };
  enqueue?: { type: string; args: unknown[]; meta: Record<string, unknown>; options?: object }[];
}

/** The reply to a call of a run; undefined: none yet. */
export type Reply =
  | { value?: unknown; error?: never }
  | { error: { code: string; message: string; retryable?: boolean }; value?: never }
  | undefined;

/** Accepts everything. */
export const accept = ({ enqueue }: Said): Reply =>
  enqueue ? { value: enqueue.map((job, index) => ({ ...job, id: `child-${index}`, state: 'available' })) } : {};

export interface LiveCall {
  /** Everything that was said, in order. */
  said: Said[];
  response: Promise<Response>;
  /** The outcomes by delivery id, once the answer has ended. */
  results: Promise<Record<string, Said>>;
  /** Says a line to the handlers. */
  say(message: object): void;
  /** Says nothing more. */
  hangUp(): void;
}

/** Delivers jobs in one open call. */
export function openCall(
  worker: Pick<HandlerWorker, 'fetch'>,
  jobs: readonly (TestJob & Record<string, unknown>)[],
  reply: (said: Said) => Reply | Promise<Reply> = accept,
): LiveCall {
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const say = (message: object): void => {
    writer.write(new TextEncoder().encode(`${JSON.stringify(message)}\n`)).catch(() => undefined);
  };
  const deliveries = jobs.map((job, index) => ({
    delivery_id: `del_${index}`,
    job: { id: `job-${index}`, args: [], attempt: 1, ...job },
  }));
  const headers = { 'Tocsin-Control': 'lines' };
  const request = new Request('http://handler/', { method: 'POST', headers, body: readable });
  const said: Said[] = [];
  const response = worker.fetch(request, {});
  say({ worker_id: 'push_test', deliveries });

  const hear = async (line: Said): Promise<void> => {
    said.push(line);
    if (line.call === undefined) return;
    const answer = await reply(line);
    if (answer) say({ reply: line.call, ...answer });
  };
  const results = (async () => {
    const answer = await response;
    if (answer.headers.get('Content-Type') === 'application/x-ndjson') {
      for await (const line of linesOf(answer)) void hear(JSON.parse(line));
    } else {
      said.push(...(await answer.json<{ results: Said[] }>()).results);
    }
    writer.close().catch(() => undefined);
    return Object.fromEntries(said.flatMap((line) => (line.status ? [[line.delivery_id, line]] : [])));
  })();
  return { said, response, results, say, hangUp: () => void writer.close().catch(() => undefined) };
}

async function* linesOf(response: Response): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') throw new Error(`the answer was cut off: ${rest}`);
}
