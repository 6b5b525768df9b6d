/** The document of the API, built by `.ci/ui.mjs` from `docs/reference/openapi.json`. The module is not committed. */

/** JSON text, without descriptions. */
export const document: string;
