/** Main modules that a build writes: what is added to them is gone with the next build. */
import { posix } from 'node:path';

/** Where frameworks write the Worker, and what each calls itself. */
const BUILT: readonly [path: RegExp, framework: string][] = [
  [/^\.svelte-kit\//, 'SvelteKit'],
  [/^\.open-next\//, 'OpenNext'],
  [/^@astrojs\/cloudflare/, 'Astro'],
  [/^(dist|build)\/_worker\.js(\/|$)/, 'Astro or another framework'],
  [/^(\.output|\.nitro|\.nuxt)\//, 'Nuxt or Nitro'],
  [/^\.vinxi\//, 'Vinxi'],
];

export const FRAMEWORKS_PAGE = 'docs/start/frameworks.md';

/** The build that writes a main module; undefined: people do. @param ignored lines of .gitignore */
export function builtBy(main: unknown, ignored = ''): string | undefined {
  if (typeof main !== 'string') return undefined;
  const path = posix.normalize(main.replaceAll('\\', '/'));
  const known = BUILT.find(([pattern]) => pattern.test(path));
  if (known) return known[1];
  const [folder, ...rest] = path.split('/');
  const lines = ignored.split(/\r?\n/).map((line) => line.trim().replace(/^\/|\/\**$/g, ''));
  return rest.length > 0 && folder !== undefined && lines.includes(folder) ? 'a build' : undefined;
}
