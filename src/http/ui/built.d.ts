/** The dashboard as `.ci/ui.mjs` builds it from `src/ui`; the module itself is not committed. */

/** The HTML of every page; `%BASE%` and `%API%` stand for relative URLs. */
export const shell: string;

/** Changes whenever anything of the dashboard does. */
export const version: string;

/** The files of the dashboard by their names, which carry a hash of what is in them. */
export const assets: Readonly<Record<string, { type: string; body: string }>>;

/** Names of the assets that are loaded before anything is shown. */
export const first: readonly string[];
