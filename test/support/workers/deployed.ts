/** Two versions of a handler Worker made with the library; `/deploy?version=2` replaces the first by the second. */
import { defineHandlers } from '../../../src/handler';

interface Order {
  fail?: boolean;
}

const asked: number[] = [];
let deployed = 1;

const versionOf = (version: number, settings: object) => {
  const worker = defineHandlers(
    {
      'deployed.job': {
        handler: async (job, ctx) => {
          if ((job.args[0] as Order | undefined)?.fail) throw new Error('as ordered');
          return { version, attempt: ctx.attempt, timeout_ms: job.timeoutMs };
        },
        ...settings,
      },
    },
    { log: () => undefined },
  );
  return (request: Request) => worker.fetch(request, {});
};

const versions = [
  versionOf(1, { timeoutMs: 11_000, maxAttempts: 4, retry: { initial_interval: '11s', jitter: false } }),
  versionOf(2, { timeoutMs: 22_000, maxAttempts: 6, retry: { initial_interval: '22s', jitter: false } }),
];

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/deploy') deployed = Number(searchParams.get('version'));
    if (pathname === '/deploy' || pathname === '/asked') return Response.json(asked);
    if (pathname === '/.well-known/tocsin') asked.push(deployed);
    return (versions[deployed - 1] as (request: Request) => Promise<Response>)(request);
  },
};
