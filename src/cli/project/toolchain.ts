/** What a Worker with the queue consists of, and versions of tools that work together. */

/** The classes of objects, as migrations and exports name them. */
export const OBJECT_CLASSES = ['QueueObject', 'DirectoryObject', 'UniqueLockObject', 'WorkflowObject'] as const;

/** What the main module of the Worker exports from `tocsin/queue`. */
export const QUEUE_EXPORTS: readonly string[] = [...OBJECT_CLASSES, 'TocsinHandlers', 'Tocsin'].sort();

/** From this date on a Worker finds its own classes without bindings; before, the flag does it. */
export const EXPORTS_DATE = '2025-11-17';
export const EXPORTS_FLAG = 'enable_ctx_exports';

/** Of a new project: known to every wrangler since 4.86, which is what Node 20 gets. */
export const COMPATIBILITY_DATE = '2026-05-03';

/** Tools of a new project. They work on Node 20, too: `node` puts a newer one before it in every npm script. */
export const DEV_DEPENDENCIES: Readonly<Record<string, string>> = {
  '@cloudflare/vitest-pool-workers': 'npm:@cloudflare/vitest-plugin@1.5.0',
  '@cloudflare/workers-types': '5.20261117.1',
  node: '24.21.0',
  typescript: '7.0.2',
  vitest: '4.1.11',
  wrangler: '4.156.2',
};

/** Packages among them whose install scripts must run. */
export const INSTALL_SCRIPTS = ['node', 'esbuild', 'workerd'] as const;
