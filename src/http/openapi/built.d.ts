/** The document of the API, built by `.ci/ui.mjs` from `docs/reference/openapi.json`. The module is not committed. */

/** All but the schemas and the paths. */
export const rest: { components: Record<string, unknown> } & Record<string, unknown>;

/** What the statuses of answers are called. */
export const statuses: Readonly<Record<string, string>>;

/** A line for each schema; see `document.ts`. */
export const schemas: string;

/** The paths, each followed by its operations; see `document.ts`. */
export const paths: string;
