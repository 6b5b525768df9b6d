/** What a Worker with the queue consists of, and versions of tools that work together. */

/** The classes of objects, as migrations and exports name them. */
export const OBJECT_CLASSES = ['QueueObject', 'DirectoryObject', 'UniqueLockObject', 'WorkflowObject'] as const;

/** What the main module of the Worker exports from `tocsin/queue`. */
export const QUEUE_EXPORTS: readonly string[] = [...OBJECT_CLASSES, 'TocsinHandlers', 'Tocsin'].sort();

/** A compatibility flag, and the date from which on it is the default. */
export interface NeededFlag {
  flag: string;
  since: string;
  why: string;
  vital?: true;
}

/** Flags that a Worker with the queue needs where its compatibility date is older. */
export const NEEDED_FLAGS: readonly NeededFlag[] = [
  { flag: 'enable_ctx_exports', since: '2025-11-17', why: 'the Worker finds its own classes', vital: true },
  { flag: 'enable_weak_ref', since: '2025-05-05', why: 'the queue notices clients that vanish' },
  {
    flag: 'unhandled_rejection_after_microtask_checkpoint',
    since: '2026-03-03',
    why: 'errors that are handled do not fail a test run',
  },
];

/** Of a new project: known to every wrangler since 4.86, which is what Node 20 gets. */
export const COMPATIBILITY_DATE = '2026-05-03';

/** Runs tests in the Workers runtime; it needs Vitest 4.1 or newer. */
export const POOL = '@cloudflare/vitest-pool-workers';

/** Tools of a new project. They work on Node 20, too: `node` puts a newer one before it in every npm script. */
export const DEV_DEPENDENCIES: Readonly<Record<string, string>> = {
  [POOL]: 'npm:@cloudflare/vitest-plugin@1.5.0',
  '@cloudflare/workers-types': '5.20261117.1',
  node: '24.21.0',
  typescript: '7.0.2',
  vitest: '4.1.11',
  wrangler: '4.156.2',
};

/** Packages among them whose install scripts must run. */
export const INSTALL_SCRIPTS = ['node', 'esbuild', 'workerd'] as const;
