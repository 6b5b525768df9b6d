import { existsSync, globSync, readFileSync, statfsSync } from 'node:fs';
import { cloudflareTest } from '@cloudflare/vitest-pool-workers';
import { buildSync } from 'esbuild';
import { defineConfig } from 'vitest/config';
import { writeBuilt } from './.ci/ui.mjs';

// The Worker embeds the dashboard and the document of the API.
await writeBuilt();

/** Where Linux keeps files in memory. What tests store need not survive them, and a disk is waited for at each commit. */
const MEMORY = '/dev/shm';
/** Bytes that must be free there. */
const MEMORY_ROOM = 2 * 1024 ** 3;
if (!process.env.TMPDIR && existsSync(MEMORY)) {
  const { bavail, bsize } = statfsSync(MEMORY);
  if (bavail * bsize >= MEMORY_ROOM) process.env.TMPDIR = MEMORY;
}

/** Handler Workers of the tests, bundled because auxiliary Workers take a script, not a project. */
function bundle(entry: string): string {
  const { outputFiles } = buildSync({
    entryPoints: [entry],
    bundle: true,
    format: 'esm',
    target: 'es2023',
    external: ['cloudflare:*'],
    loader: { '.sql': 'text' },
    write: false,
  });
  return outputFiles[0]?.text ?? '';
}

/** Vectors published beside the project; its own stand in test/job/retry/vectors.json. */
function sharedRetryVectors(): unknown[] | null {
  const file = new URL('../shared/retry-vectors.json', import.meta.url);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { vectors: unknown[] }).vectors : null;
}

/** A class of objects. Only a test evicts one: by itself the runtime does once nothing has called it for a while, on a busy machine. */
const object = (className: string) => ({ className, useSQLite: true, unsafePreventEviction: true });

const OBJECTS = {
  QUEUES: object('QueueObject'),
  DIRECTORY: object('DirectoryObject'),
  UNIQUE_LOCKS: object('UniqueLockObject'),
  WORKFLOWS: object('WorkflowObject'),
};

/** The oldest date that is supported: the newest one of the wrangler that npm installs on Node 20. */
const compatibility = { compatibilityDate: '2026-05-03', compatibilityFlags: ['enable_request_signal'] };

/**
 * Tests that need a Worker of their own. All others share one (`--mode shared`), with its modules, which takes a fraction of the
 * time: test/support/shared.ts empties it before each file. `--mode isolated` runs these. Without a mode, as for a file or two,
 * each has its own.
 */
const ISOLATED = [
  // Counts all clients of the Worker, also those that other files leave.
  'test/durable/unread.test.ts',
  // Declares what the deployment is, for as long as the Worker lives.
  'test/library/options.test.ts',
  // The Worker of a user, which remembers what was stored before it was emptied from here.
  'test/library/inside.test.ts',
  'test/queue/features/analytics/analytics.test.ts',
  // Tells the whole process to hand out no jobs.
  'test/queue/features/push/rest.test.ts',
  // Stand in the place of what the runtime gives to everybody, such as `JSON.parse`, in thousands of requests.
  'test/fuzz/**/*.test.ts',
  // Takes as long as many files, in an object that lives as long.
  'test/simulation/**/*.test.ts',
];

/** Tests that take this long, ms, hang. */
const HANG_MS = 300_000;

/** Files with tests that `npm test` leaves out, or plays a part of: `--mode long` runs them whole. They say so by what they import. */
const LONG = globSync('test/**/*.test.ts').filter((file) => readFileSync(file, 'utf8').includes("/long';"));

/** Files that take most of the time of all: `npm test` leaves them out, `--mode long` runs them. */
const SLOW = [
  'test/across/unique/moves.test.ts',
  'test/client/line.test.ts',
  'test/client/runner.test.ts',
  'test/directory/many.test.ts',
  'test/http/access/bounds.test.ts',
  'test/http/access/secrets.test.ts',
  'test/http/export/odd-values.test.ts',
  'test/http/export/refusals.test.ts',
  'test/http/export/round-trip.test.ts',
  'test/http/held.test.ts',
  'test/http/jobs/large.test.ts',
  'test/http/metrics/quiet.test.ts',
  'test/http/metrics/stream.test.ts',
  'test/http/request/conditions.test.ts',
  'test/http/request/held.test.ts',
  'test/http/targets/targets.test.ts',
  'test/http/webhooks/deliveries.test.ts',
  'test/queue/features/bulk/keys.test.ts',
  'test/queue/features/bulk/steps.test.ts',
  'test/queue/features/cron/manage.test.ts',
  'test/queue/features/group-limits.test.ts',
  'test/queue/features/group-operations.test.ts',
  'test/queue/features/groups.test.ts',
  'test/queue/features/lifecycle/overdue.test.ts',
  'test/queue/features/lifecycle/storage.test.ts',
  'test/queue/features/limits/crowd.test.ts',
  'test/queue/features/limits/deployment.test.ts',
  'test/queue/features/limits/mixed.property.test.ts',
  'test/queue/features/pull/socket-enqueue.test.ts',
  'test/queue/features/pull/sockets.test.ts',
  'test/queue/features/push/backlog.test.ts',
  'test/queue/features/push/health.test.ts',
  'test/queue/features/push/job-urls.test.ts',
  'test/queue/features/push/large.test.ts',
  'test/queue/features/push/messages.test.ts',
  'test/queue/features/push/urls.test.ts',
  'test/queue/features/strict-chunks.test.ts',
  'test/queue/features/transfer/moves.test.ts',
  'test/queue/features/ways-in.test.ts',
  'test/queue/groups-budget.test.ts',
  'test/queue/limits-budget.test.ts',
  'test/queue/read/bytes.test.ts',
  'test/queue/read/export.property.test.ts',
  'test/queue/read/filters.test.ts',
  'test/queue/read/groups.test.ts',
  'test/queue/read/search.test.ts',
  'test/queue/store/blocks.test.ts',
  'test/queue/store/due-blocks.test.ts',
  'test/queue/store/meters.test.ts',
  'test/queue/store/retry-blocks.test.ts',
];

/** Modes whose files share one Worker. */
const SHARED = ['shared', 'long'];

/** What each mode runs, where that is not everything. */
const INCLUDED: Record<string, string[]> = { isolated: ISOLATED, long: [...new Set([...LONG, ...SLOW])] };
/** What each mode leaves out. test/testing/inside is another Worker's: test/testing/vitest.config.ts runs it. */
const EXCLUDED: Record<string, string[]> = { shared: [...ISOLATED, ...SLOW], long: ISOLATED };

export default defineConfig(({ mode }) => ({
  plugins: [
    cloudflareTest({
      wrangler: { configPath: './wrangler.toml' },
      miniflare: {
        // The queue needs no bindings for its objects; the tests look into them.
        durableObjects: OBJECTS,
        bindings: {
          TEST_HOOKS: 'true',
          ALLOW_LOCALHOST: 'true',
          // As in production: without it, localhost is a developer's machine.
          MAX_HANDLER_PAUSE_MS: '60000',
          HANDLERS: {
            'work.*': 'WORK',
            'handled/*': 'WORK',
            'owned/work.*': 'WORK',
            'plain.*': { binding: 'PLAIN', timeout_ms: 300 },
            'bare.*': { binding: 'PLAIN', timeout_ms: 300, payload: 'job' },
            'patient.*': { binding: 'PLAIN', max_concurrency: 2 },
            'wide.*': { binding: 'PLAIN', max_concurrency: 200 },
            'raw.*': { binding: 'RAW', batch_size: 20, timeout_ms: 500 },
            'crowd.*': { binding: 'RAW', batch_size: 50 },
            'chunk.*': 'CHUNKS',
            'pack.*': { binding: 'RAW', batch: { size: 3, wait_ms: 5_000 } },
            'talk.*': { binding: 'TALK', timeout_ms: 5_000, batch_size: 20 },
            'fickle.*': 'FICKLE',
            'deployed.*': 'DEPLOYED',
            'down.*': 'DOWN',
            'web.*': 'https://app.example/hooks/tocsin',
            'web.bare.*': { url: 'https://app.example/bare?v=1', payload: 'job', timeout_ms: 300 },
            'web.trusted.*': { url: 'https://app.example/trusted', may_enqueue: ['urls-children'] },
            'web.anywhere.*': { url: 'https://app.example/anywhere', may_enqueue: '*' },
            'web.down.*': 'https://down.example/jobs',
            'web.unresolved.*': 'https://unresolved.example/jobs',
            'web.batch.*': { url: 'https://batch.example/', payload: 'batch', batch_size: 5 },
            'web.chunk.*': { url: 'https://batch.example/', batch: { size: 3, wait_ms: 5_000, by: 'group' } },
            'web.upstash.*': {
              url: 'https://app.example/upstash',
              signature: ['qstash', 'standard'],
              secret_binding: 'UPSTASH_SECRET',
            },
          },
          TOKEN_SECRET: 'new-token-secret-of-the-tests-0123456789 old-token-secret-of-the-tests-0123456789',
          PUBLIC_URL: 'https://jobs.example/queue',
          TARGET_SECRET: 'whsec_bmV3LXNlY3JldC1vZi10ZXN0cw== old-secret-of-tests',
          ALLOWED_TARGET_HOSTS: 'app.example down.example, *.hooks.example',
          UPSTASH_SECRET: 'sig_current_of_tests sig_before_of_tests',
        },
        serviceBindings: {
          WORK: 'work',
          PLAIN: 'plain',
          RAW: 'raw',
          CHUNKS: 'chunks',
          TALK: 'talk',
          FICKLE: 'fickle',
          DEPLOYED: 'deployed',
          DOWN: 'down',
          INSIDE: 'inside',
          INSIDE_RPC: { name: 'inside', entrypoint: 'Tocsin' },
          INTERNET: 'internet',
          ANALYTICS_FAKE: { name: 'analytics', entrypoint: 'Dataset' },
        },
        outboundService: 'internet',
        workers: [
          { name: 'work', modules: true, script: bundle('./test/support/workers/work.ts'), ...compatibility },
          { name: 'plain', modules: true, script: bundle('./test/support/workers/plain.ts'), ...compatibility },
          { name: 'raw', modules: true, script: bundle('./test/support/workers/raw.ts'), ...compatibility },
          { name: 'chunks', modules: true, script: bundle('./test/support/workers/chunks.ts'), ...compatibility },
          { name: 'talk', modules: true, script: bundle('./test/support/workers/talk.ts'), ...compatibility },
          { name: 'fickle', modules: true, script: bundle('./test/support/workers/fickle.ts'), ...compatibility },
          { name: 'deployed', modules: true, script: bundle('./test/support/workers/deployed.ts'), ...compatibility },
          {
            name: 'inside',
            modules: true,
            script: bundle('./test/support/workers/inside.ts'),
            durableObjects: OBJECTS,
            bindings: {
              API_KEYS: JSON.stringify([{ key: 'secret' }, { key: 'watching', role: 'viewer' }]),
              REDACT: 'rate_limit.key',
              TOKEN_SECRET: 'token-secret-of-the-inside-0123456789',
            },
            serviceBindings: { ANALYTICS: { name: 'analytics', entrypoint: 'Dataset' } },
            ...compatibility,
          },
          { name: 'internet', modules: true, script: bundle('./test/support/workers/internet.ts'), ...compatibility },
          { name: 'analytics', modules: true, script: bundle('./test/support/workers/analytics.ts'), ...compatibility },
          { name: 'down', modules: true, script: bundle('./test/support/workers/down.ts'), ...compatibility },
        ],
      },
    }),
  ],
  test: {
    include: INCLUDED[mode] ?? ['test/**/*.test.ts'],
    exclude: ['test/testing/inside/**', ...(EXCLUDED[mode] ?? [])],
    isolate: !SHARED.includes(mode),
    setupFiles: [
      'test/support/module-once.ts',
      'test/support/platform.ts',
      ...(SHARED.includes(mode) ? ['test/support/shared.ts'] : []),
    ],
    // By itself vitest would leave one of two cores alone. Files that need a Worker each run beside the others of `npm test`.
    maxWorkers: mode === 'isolated' ? 1 : 2,
    // Only a test that hangs reaches it, also where four other processes want the same two cores: no test names a shorter one. It is
    // longer than tests wait for what they observe, whose own error says what did not happen.
    testTimeout: HANG_MS,
    hookTimeout: HANG_MS,
    provide: {
      sharedRetryVectors: sharedRetryVectors(),
      long: mode === 'long',
      fuzz: {
        runs: Number(process.env.FUZZ_RUNS ?? 500),
        seed: Number(process.env.FUZZ_SEED ?? 1),
      },
    },
  },
}));
